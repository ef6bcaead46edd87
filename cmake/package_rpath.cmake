# cmake -DPROGRAM=FILE -P: an installed program that is packed in a wheel also finds the libraries of the wheels beside it.
file(RPATH_SET FILE "${PROGRAM}"
  NEW_RPATH "$ORIGIN/../lib/collimate:$ORIGIN/../../torch/lib:$ORIGIN/../../pyarrow")
