"""How bench/published reads the rows of a results file."""
import os
import pathlib
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "bench" / "published"))

import measures  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import runs  # noqa: E402
from words import NotModelled  # noqa: E402

OPTIONS = types.SimpleNamespace(program=pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve() / "bench_published",
                                set=[], device=[])
PPO = {"id": "1", "paper": "P", "algo": "PPO", "actor": "7", "critic": "7", "ref": "7", "reward": "7", "n_gpus": "16",
       "gpu_type": "A100", "batch": "1024", "prompt_len": "1024", "gen_len": "1024", "system": "verl", "metric": "time",
       "value": "100", "unit": "s", "phase": "step"}
GRPO = {"algo": "GRPO", "critic": "-", "ref": "-", "reward": "rule", "n_gpus": "32", "gpu_type": "H20", "batch": "64",
        "prompt_len": "", "gen_len": "8192", "placement": "colocate"}


def typed(**changes):
    row = {**dict.fromkeys(rows.COLUMNS, ""), "fault": "", **PPO, **changes}
    return report.typed(row, report.known_of(OPTIONS, [row]))


class Rows(unittest.TestCase):
    def run_of(self, **changes):
        made = typed(**changes)
        self.assertNotIn("reason", made)
        return made["run"]

    def reason(self, **changes):
        return typed(**changes).get("reason", "")

    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            path.write_bytes(text.encode())
            return rows.read_rows(str(path))

    def test_quoted_fields_and_wrong_files(self):
        header = ",".join(rows.COLUMNS) + "\n"
        row = self.read("\ufeff" + header + '1,"A ""B"", C",PPO' + "," * 19 + '"two\nlines"\n')[0]
        self.assertEqual((row["paper"], row["note"], row["fault"]), ('A "B", C', "two\nlines", ""))
        for wrong in ("", "id,paper\n1,2\n", header, header + '"1'):
            with self.assertRaises(SystemExit):
                self.read(wrong)
        bad = self.read(header + "7,P,too,few\n,P\n8,P,PPO," + "9" * 5000 + "," * 18 + "\n")
        self.assertEqual(bad[0]["fault"], "4 fields instead of 22")
        self.assertEqual(bad[1]["id"], "row 2")
        self.assertIn("'actor' has 5000 characters", bad[2]["fault"])

    def test_a_pipe_is_no_file_of_results(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(folder + "/rows.csv")
            with self.assertRaises(SystemExit):
                rows.read_rows(folder + "/rows.csv")

    def test_models_in_all_their_spellings(self):
        names = {"7": "llama2-7b", "7 (Qwen2.5-Math-7B)": "qwen2.5-7b",
                 "7 (Qwen2.5-7B multi-turn ReTool)": "qwen2.5-7b",
                 "30B-A3B (Qwen3)": "qwen3-30b-a3b", "30B-A3B": "qwen3-30b-a3b", "235B-A22B": "qwen3-235b-a22b",
                 "671B-A37B (DeepSeek-V3)": "deepseek-v3", "Moonlight (16B-A3B)": "moonlight-16b-a3b",
                 "Kimi-K2 (1T-A32B)": "kimi-k2", "LLAMA3.1_8B": "llama3.1-8b", "DeepSeek V3": "deepseek-v3",
                 "Qwen3-30B3A": "qwen3-30b-a3b", "0.35": "opt-350m", "": None, "-": None, "rule": None, "7-65": None,
                 "7/32/72": None, "nonesuch": None}
        found = report.known_of(OPTIONS, [{**PPO, "actor": name} for name in names])["models"]
        self.assertEqual({name: found[name] for name in names}, names)
        # Beside a critic of OPT's the actor is OPT's too; and a cut model is found by its note.
        self.assertEqual(self.run_of(actor="13", critic="0.35")["models"]["actor"], "opt-13b")
        self.assertEqual(self.run_of(actor="13", critic="13")["models"]["actor"], "llama2-13b")
        self.assertEqual(self.run_of(note="GPT L32/h4096")["models"]["ref"], {"layers": 32, "hidden": 4096})

    def test_batches_and_lengths(self):
        def load(batch, length="8192", **changes):
            run = self.run_of(**{**GRPO, "batch": batch, "gen_len": length, **changes})
            return run["rows"], run["updates"]

        self.assertEqual(load("512 prompts x16, mini 32"), (8192, 16))
        self.assertEqual(load("512 prompts x16, 4 minibatches", "max 27648"), (8192, 4))
        self.assertEqual(load("GBS 2048 (prompts x gens 64x32), train GBS 512", "max total 4096, avg 1060"), (2048, 4))
        self.assertEqual(load("sample_per_episode 1024, train GBS 128", "512"), (1024, 8))
        self.assertEqual(load("<=1024 pairs (0.5M tok)/step", "256")[0], 1024)
        self.assertEqual(load("0.5M tok/step", "256 fixed (no EOS)", prompt_len="256")[0], 1024)
        self.assertEqual(load("3200 requests", "max 65536, avg 22386")[0], 3200)
        total = self.run_of(**{**GRPO, "batch": "64x16", "gen_len": "max total 4096, avg 1060"})
        self.assertAlmostEqual(total["prompt"] + total["mean_completion"], 1060)
        self.assertAlmostEqual(total["prompt"] + total["completion_cap"], 4096)
        self.assertEqual(self.run_of(gen_len="896")["completion"], 896)

    def test_updates_that_are_not_stated(self):
        for critic, batch, updates in (("7", "512", 8), ("7", "1024 prompts, 1 PPO epoch", 8), ("7", "4", 4),
                                       ("7", "512, 4 minibatches", 4), ("7", "0.5M tok/step", 1), ("-", "512", 1)):
            self.assertEqual(self.run_of(critic=critic, batch=batch, system="DeepSpeedChat")["updates"], updates, batch)

    def test_layouts(self):
        nemo = self.run_of(**{**GRPO, "actor": "Qwen3-235B", "n_gpus": "192", "system": "NeMo-RL",
                              "placement": "128 train:64 gen", "parallelism":
                              "gen[TP,PP]=[8,1] train[TP,CP,EP,PP,VPP]=[4,2,16,8,n/a]"})
        self.assertEqual(nemo["layouts"], {"generate": {"tp": 8, "pp": 1},
                                           "train": {"tp": 4, "pp": 8, "ep": 16, "cp": 2}})
        self.assertEqual((nemo["train_devices"], nemo["generate_devices"]), (128, 64))
        roles = self.run_of(system="ChatLearn 0.1", parallelism="policy TP4, ppo TP4 PP2, reward TP2; "
                                                                "ref/value 4 GPUs; gen bs128, MBS8")
        self.assertEqual(roles["layouts"]["generate"], {"tp": 4})
        self.assertEqual(roles["layouts"]["train"], {"tp": 4, "pp": 2})
        self.assertEqual(roles["layouts"]["ref"], {"devices": 4})
        self.assertEqual(roles["micro_batch"], 8)
        # dp is of what says its tp too.
        self.assertEqual(self.run_of(parallelism="rollout TP8 DP2")["layouts"], {"generate": {"tp": 8, "dp": 2}})
        self.assertNotIn("dp", self.run_of(parallelism="32 GPU/instance DP32/EP32")["layouts"].get("", {}))

    def test_placements(self):
        def side(placement):
            return self.run_of(**{**GRPO, "n_gpus": "128", "placement": placement})

        self.assertEqual(side("96 rollout:32 train")["train_devices"], 32)
        self.assertEqual(side("75% inference : 25% training")["train_devices"], 32)
        self.assertEqual(side("64:64 staleness_threshold=0.1")["staleness"], 0.1)
        self.assertEqual(side("ratio 1:3")["generate_devices"], 96)
        self.assertEqual(side("colocate")["sharing"], "colocated")
        groups = self.run_of(system="OpenRLHF", placement="Actor/Critic/Ref/RM GPUs 4/4/2/2 + vLLM")["places"]
        self.assertEqual((groups["generate"], groups["ref"]), ((4, 4), (2, 2)))
        form = {name: self.run_of(system="HybridFlow", placement=name) for name in
                ("standalone", "split", "interleaving", "separation")}
        self.assertEqual(form["standalone"]["places"]["critic"][0], 4)
        self.assertEqual(form["standalone"]["places"]["generate"], form["standalone"]["places"]["actor"])
        self.assertEqual(form["split"]["places"]["ref"], form["split"]["places"]["actor"])
        self.assertNotEqual(form["split"]["places"]["reward"], form["split"]["places"]["actor"])
        self.assertEqual(form["interleaving"]["places"]["actor"][0], 16)
        self.assertEqual(form["interleaving"]["places"]["ref"][0], 8)
        self.assertEqual((form["separation"]["staleness"], form["separation"]["train_devices"]), (0, 8))

    def test_algorithms_and_software(self):
        remax = self.run_of(algo="ReMax")
        self.assertEqual(remax["generations"], 2)
        self.assertNotIn("critic", remax["models"])
        self.assertEqual(self.run_of(algo="Safe-RLHF")["train_sets"], 2)
        self.assertFalse(self.run_of(system="HybridFlow")["sharded_training"])
        epoch = {"batch": "131.9k pairs/epoch, <=1024 pairs/step", "system": "DeepSpeed-Chat"}
        self.assertEqual((self.run_of(**epoch)["run_rows"], self.run_of(**epoch)["rows"]), (263800, 1024))
        self.assertEqual(self.run_of(**epoch, parallelism="hybrid engine DP16 TP1 MBS8")["call_rows"], 8)
        self.assertEqual(self.run_of(**epoch)["call_tokens"], 16384)
        self.assertFalse(self.run_of(**epoch)["offload"])
        self.assertTrue(self.run_of(system="OpenRLHF")["offload"])
        for system, backend in (("VeRL", "verl"), ("verl fully_async", "verl"), ("overlap", ""),
                                ("Sync.AReaL", "areal"), ("ReaL-Heuristic", "real"), ("real-time", ""),
                                ("ReaLHF", "real"), ("xverl", ""),
                                ("DeepSpeed-Chat HE", "deepspeed-chat"), ("ChatLearn 0.1", "chatlearn-megatron"),
                                ("ChatLearn 1.0", "chatlearn-vllm"), ("HybridFlow", "hybridflow"),
                                ("best of OpenRLHF", "")):
            self.assertEqual(runs.backend_of(system), backend, system)

    def test_networks_as_the_row_states_them(self):
        for text, in_node, bits in (("A100-80GB", 0, 0), ("A800-80GB (8/node, 800 Gb RDMA)", 8, 800e9),
                                    ("H800-80GB (8/node, 400Gb IB)", 8, 400e9),
                                    ("A100-80GB (8/node, 200 Gbps)", 8, 2e11),
                                    ("Hopper (8x200Gb RoCEv2)", 0, 1600e9), ("A100-80GB (4/node)", 4, 0)):
            gpu = self.run_of(gpu_type=text)["gpu"]
            self.assertEqual((gpu["per_node"], gpu["network_bits"]), (in_node, bits), text)
        self.assertEqual(self.run_of(gpu_type="unstated (A100/A800/H800-80GB class)")["gpu"]["kind"], "A100-80")

    def test_what_is_not_modelled_says_why(self):
        for changes, words in (({"n_gpus": ""}, "number of devices"), ({"actor": "7-65"}, "no one model"),
                               ({"gpu_type": "Ascend NPU"}, "GPU type"), ({"system": "Laminar"}, "'Laminar'"),
                               ({"phase": "validate"}, "'validate'"), ({"metric": "colour"}, "metric colour"),
                               ({"batch": "0x16"}, "'0x16'"), ({"gen_len": "9" * 20}, "lengths"),
                               ({"value": "nan"}, "'nan'"), ({"unit": "fortnights"}, "unit fortnights"),
                               ({"unit": "h"}, "rows of a run"), ({"metric": "speed-up"}, "baseline: software of ''")):
            self.assertIn(words, self.reason(**changes))
        for bad in ("ratio 1:1:1", "99999999999999999999/1/1/1", "4/4/0/0", "8/8/4/4", "12 train:8 gen", "0:16",
                    "60% inference : 50% training", "99999999999999999999:1", "5:6"):
            self.assertIn(f"placement '{bad}' of 16 devices", self.reason(placement=bad))
        self.assertEqual(self.reason(parallelism="train TP64"),
                         "parallelism 'train TP64': TP64 does not divide the 16 devices of train")
        self.assertEqual(self.reason(parallelism="train TP16"), "")

    def test_what_is_not_read_is_named(self):
        for column, text in (("algo", "foo"), ("placement", "gibberish words"), ("placement", "actor 8, critic 8"),
                             ("placement", "not colocated"), ("parallelism", "TP2, gibberish"), ("parallelism", "TPx"),
                             ("batch", "abc"), ("prompt_len", "abc"), ("gen_len", "abc"), ("gen_len", "max 0"),
                             ("gpu_type", "A100-80GB x2")):
            self.assertRegex(self.reason(**{column: text}), f"{column} '{text}'.* is not read")
        self.assertEqual(self.reason(batch="512 something"),
                         "batch '512 something', of which 'something' is not read")
        for column, text in (("placement", "colocated, Adam offload, RM/ref ZeRO-3 param offload"),
                             ("placement", "max staleness eta=4"), ("gen_len", "512 fixed (no EOS)"),
                             ("gen_len", "8k context"), ("algo", "PPO (no critic/ref)")):
            self.assertEqual(self.reason(**{column: text}), "", text)

    def test_values_and_measures(self):
        self.assertEqual(measures.value_of({**PPO, "value_hi": "", "value": "1.8-2.5"}), (1.8, 2.5))
        self.assertEqual(measures.value_of({**PPO, "value_hi": "3", "value": "2"}), (2, 3))
        self.assertEqual(measures.value_of({"metric": "status", "value": "OOM"}), (1, 1))
        run = self.run_of()
        self.assertEqual(measures.parts_of("gen + update_actor", run), ["generation", "training"])
        with self.assertRaises(NotModelled):  # PPO with a critic keeps those of its generation
            measures.parts_of("old_log_prob", run)
        apart = {**GRPO, "placement": "16:16 fully async"}
        self.assertEqual(measures.parts_of("generation", self.run_of(**apart)), ["waiting"])
        self.assertIn("not modelled", self.reason(**apart, phase="old_log_prob"))
        self.assertEqual(self.reason(**{**apart, "placement": "16:16 one-step-off"}, phase="old_log_prob"), "")

    def test_kept_rows_are_not_fitted(self):
        def fits(**changes):
            return typed(**{**GRPO, **changes})["may_fit"]

        self.assertTrue(fits(n_gpus="64"))
        self.assertFalse(fits(n_gpus="128"))
        self.assertTrue(fits(n_gpus="64", placement="32:32"))
        self.assertFalse(fits(unit="tok/s/GPU", metric="throughput"))
        self.assertFalse(fits(value="1-2"))

    def test_a_fitted_row_is_of_the_same_run(self):
        fitted = report.read_fitted()
        other = {**fitted[0], "parameters": fitted[0]["parameters"] * 1.0005}
        self.assertTrue(report.is_same(other, fitted[0]))
        for name, value in (("id", "?"), ("measured", "?"), ("devices", 9), ("completion", 384), ("backend", "real")):
            self.assertFalse(report.is_same({**other, name: value}, fitted[0]), name)

    def test_ranks_are_of_one_unit(self):
        self.assertAlmostEqual(report.rank_correlation([1, 2, 3], [10, 20, 90]), 1)
        self.assertAlmostEqual(report.rank_correlation([1, 2, 3], [3, 2, 1]), -1)
        self.assertAlmostEqual(report.rank_correlation([1, 1, 2], [1, 1, 2]), 1)
        times = [{"unit": unit, "published": p, "predicted": p * scale}
                 for unit, scale in (("s", 1), ("h", 100)) for p in (1, 2, 3)]
        self.assertAlmostEqual(report.pooled_rank(times), 1)


if __name__ == "__main__":
    unittest.main()
