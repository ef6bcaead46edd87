# Thin verbs over tools/make.sh, which installs what is missing and drives the CMake presets.
.PHONY: help quickstart build test check bench archive install goldens clean
help quickstart build test check bench archive clean:
	@tools/make.sh $@
goldens:
	@tools/make.sh goldens "$(or $(GOLDENS),../shared/goldens)"
install:
	@tools/make.sh install "$(abspath $(or $(PREFIX),/usr/local))"
