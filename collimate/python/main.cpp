// This is the extension module collimate._native, whose functions python/collimate calls with JSON texts. A call
// releases Python's lock; workers take it while they call a function of the caller.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/immovable.h"
#include "collimate/python/calls.h"
#include "collimate/python/generate.h"
#include "collimate/python/process_scope.h"

namespace py = pybind11;

namespace collimate::python {
namespace {

// The threads that run Python's code of one function; only whoever holds Python's lock looks at them.
class RunningThreads : private base::Immovable {
  using Ident = unsigned long;  // NOLINT(google-runtime-int): Python's type

 public:
  // One thread runs the function while this lives.
  class Here : private base::Immovable {
   public:
    explicit Here(RunningThreads& all)
        : all_(all), code_(PyThread_get_thread_ident() == all.main_thread_, PyErr_SetInterruptEx) {
      all_.threads_.push_back(PyThread_get_thread_ident());
    }
    ~Here() { std::erase(all_.threads_, PyThread_get_thread_ident()); }

   private:
    RunningThreads& all_;
    CallersCode code_;
  };

  // Python raises it between two of its instructions: a call that waits outside of Python comes to its end first. Later
  // calls are refused.
  void raise_keyboard_interrupt() {
    stopped_ = true;
    for (const Ident thread : threads_) PyThreadState_SetAsyncExc(thread, PyExc_KeyboardInterrupt);
  }
  void require_running() const {
    if (stopped_) throw base::StoppedError("[rewards] stopped");
  }

 private:
  Ident main_thread_ = py::cast<Ident>(py::module_::import("threading").attr("main_thread")().attr("ident"));
  std::vector<Ident> threads_;
  bool stopped_ = false;
};

// Reads a list [(name, reserved columns, whether it takes several samples, function of a request)]. The caller's list
// must keep the functions alive.
std::vector<CalledFunction> called_functions(const py::list& rewards) {
  std::vector<CalledFunction> functions;
  for (const py::handle reward : rewards) {
    const auto parts = py::cast<py::tuple>(reward);
    const py::handle function = parts[3];
    const auto running = std::make_shared<RunningThreads>();
    functions.push_back({.name = py::cast<std::string>(parts[0]),
                         .reserved = py::cast<std::vector<std::string>>(parts[1]),
                         .together = py::cast<bool>(parts[2]),
                         .answer =
                             [function, running](const std::string& request) {
                               const py::gil_scoped_acquire lock;
                               running->require_running();
                               const RunningThreads::Here here(*running);
                               return py::cast<std::string>(function(request));
                             },
                         .interrupt =
                             [running] {
                               const py::gil_scoped_acquire lock;
                               running->raise_keyboard_interrupt();
                             }});
  }
  return functions;
}

GivenConfig given_config(const nlohmann::json& request, const py::list& rewards) {
  return {.value = request.at("config"), .sets = request.at("sets"), .rewards = called_functions(rewards)};
}

std::string run_train(const std::string& text, const py::list& rewards, const py::function& on_metrics) {
  const nlohmann::json request = nlohmann::json::parse(text);
  const TrainRequest call{.config = given_config(request, rewards),
                          .output = request.at("output"),
                          .resume = request.at("resume"),
                          .overwrite = request.at("overwrite"),
                          .worker_command = request.at("worker_command"),
                          .on_metrics = [&](const std::string& line) {
                            const py::gil_scoped_acquire lock;
                            return static_cast<recipe::GoesOn>(py::cast<int>(on_metrics(line)));  // 0, 1, 2
                          }};
  const py::gil_scoped_release unlocked;
  return train(call).dump();
}

std::string run_check(const std::string& text, const py::list& rewards) {
  const GivenConfig config = given_config(nlohmann::json::parse(text), rewards);
  const py::gil_scoped_release unlocked;
  return check(config).dump();
}

std::string run_evaluate(const std::string& text, const py::list& rewards) {
  const nlohmann::json request = nlohmann::json::parse(text);
  const EvaluateRequest asked{.models = request.at("models"),
                              .call = request,
                              .rewards = called_functions(rewards),
                              .download = request.at("download")};
  const py::gil_scoped_release unlocked;
  return evaluate(asked).dump();
}

std::string run_generate(const std::string& text) {
  const py::gil_scoped_release unlocked;
  return generate(nlohmann::json::parse(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Turns our errors into those of python/collimate/errors.py, with the same text.
void translate(std::exception_ptr thrown) {
  const auto raise = [](const char* name, const std::exception& error) {
    py::set_error(py::module_::import("collimate.errors").attr(name), error.what());
  };
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const base::InputError& error) {
    raise("InputError", error);
  } catch (const base::GuardError& error) {
    raise("GuardError", error);
  } catch (const base::StoppedError& error) {
    raise("StoppedError", error);
  } catch (const base::Error& error) {
    raise("RunError", error);
  }
}

}  // namespace
}  // namespace collimate::python

PYBIND11_MODULE(_native, module) {
  namespace collimate_python = collimate::python;
  py::register_exception_translator(&collimate_python::translate);
  module.def("train", &collimate_python::run_train);
  module.def("check", &collimate_python::run_check);
  module.def("evaluate", &collimate_python::run_evaluate);
  module.def("generate", &collimate_python::run_generate);
}
