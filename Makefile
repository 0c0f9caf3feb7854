# The front door. Two commands matter: `make run` and `make test`.
JOBS ?= $(shell nproc)
PRESET ?= release
CI ?=
ONCE ?=
PORT ?=
HTTP_PORT ?= $(or $(PORT),8000)
GRPC_PORT ?= $(if $(PORT),$(if $(filter 0,$(PORT)),0,$(shell expr $(PORT) + 1)),8001)
METRICS_PORT ?= $(if $(PORT),$(if $(filter 0,$(PORT)),0,$(shell expr $(PORT) + 2)),8002)
CI_STAGES = ./tools/ci --jobs $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help bootstrap build run test fast bench fuzz soak format tidy clean

help: ## what can be made
	@awk -F':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## install what is missing and build build/release/baton
	@./tools/bootstrap build
	@./tools/build $(PRESET) baton --jobs $(JOBS)

run: ## build, serve real models, send real requests, go on serving until Ctrl-C (ONCE=1: stop and report; PORT=0: free ports)
	@./tools/bootstrap build run
	@./tools/build release baton --jobs $(JOBS)
	@./tools/quickstart $(if $(ONCE),--once) --http-port $(HTTP_PORT) --grpc-port $(GRPC_PORT) --metrics-port $(METRICS_PORT)

test: ## install what is missing, build, run every test (CI=true: sanitizers, fuzzing and benchmarks too)
	@./tools/bootstrap
	@$(CI_STAGES) $(if $(filter-out false 0,$(CI)),ci,test)

fast: ## format, style, layers and unit tests: what to run before a commit
	@./tools/bootstrap build test
	@$(CI_STAGES) fast

bench: ## print the figures that README.md states
	@./tools/bootstrap
	@$(CI_STAGES) bench

fuzz: ## each fuzz target for FUZZ_SECONDS (30)
	@./tools/bootstrap build test
	@$(CI_STAGES) fuzz

soak: ## everything at once for SOAK_SECONDS (600): answers, memory and descriptors are checked
	@./tools/bootstrap
	@SOAK_SECONDS=$(or $(SOAK_SECONDS),600) $(CI_STAGES) soak

format: ## rewrite C++ sources with clang-format
	@./tools/bootstrap build test
	@./tools/format --write

tidy: ## clang-tidy over what differs from main (ALL=1: over everything)
	@./tools/bootstrap build test
	@./tools/tidy $(if $(ALL),--all) --jobs $(JOBS)

clean: ## remove what was built; .cache stays, it is downloads
	rm -rf build examples/quickstart/models examples/quickstart/out
