# Thin verbs over tools/make.sh, which installs what is missing and drives the CMake presets.
.PHONY: help quickstart build test check bench goldens clean
help quickstart build test check bench clean:
	@tools/make.sh $@
goldens:
	@tools/make.sh goldens "$(or $(GOLDENS),../shared/goldens)"
