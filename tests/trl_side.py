"""The other side of the interchange, run by a Python with TRL and without killick: `trl_side.py JOBS ANSWERS`, JSON.

Does what people do with our files: trains a reward model on our rows, scores texts with our reward folder, lets our
policy folder speak. Imports are most of its time, so one process does all.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}

import datasets
import torch
import trl
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
from trl import RewardConfig, RewardTrainer

torch.set_num_threads(1)
datasets.disable_progress_bars()


def train(job: dict[str, Any]) -> dict[str, Any]:
    """A reward model from a folder and a file of rows; its accuracy and every score that TRL itself gives."""
    kind = "parquet" if job["rows"].endswith(".parquet") else "json"
    rows = datasets.load_dataset(kind, data_files=job["rows"], split="train", cache_dir=job["scratch"])
    settings = RewardConfig(
        output_dir=job["scratch"], max_steps=job["steps"], per_device_train_batch_size=16, learning_rate=3e-3,
        lr_scheduler_type="constant", report_to="none", save_strategy="no", logging_steps=job["steps"] // 4,
        use_cpu=True, bf16=False, gradient_checkpointing=False, disable_tqdm=True, seed=0,
    )  # fmt: skip
    trainer = RewardTrainer(model=job["model"], args=settings, train_dataset=rows, eval_dataset=rows)
    trainer.train()
    trainer.save_model(job["out"])
    told = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    pairs = trainer.train_dataset
    model, collate = trainer.model.eval(), trainer.data_collator
    batch = collate([{name: row[name] for name in ("chosen_ids", "rejected_ids")} for row in pairs])
    with torch.no_grad():
        scores = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, 0]
    chosen, rejected = scores.chunk(2)
    return {
        "columns": sorted(rows.column_names), "loss": told, "accuracy": trainer.evaluate()["eval_accuracy"],
        "chosen": chosen.tolist(), "rejected": rejected.tolist(), "margin": "margin" in collate([pairs[0]]),
    }  # fmt: skip


def score(job: dict[str, Any]) -> list[float]:
    """The number that a reward folder gives to each text: framed, answered, ended, and padded in one batch."""
    model = AutoModelForSequenceClassification.from_pretrained(job["folder"]).eval()
    reads = AutoTokenizer.from_pretrained(job["folder"])
    asked = [[{"role": "user", "content": prompt}] for prompt in job["prompts"]]
    framed = (
        reads.apply_chat_template(asked, tokenize=False, add_generation_prompt=True) if job["chat"] else job["prompts"]
    )
    texts = [before + answer + reads.eos_token for before, answer in zip(framed, job["answers"], strict=True)]
    with torch.no_grad():
        rows = reads(texts, padding=True, return_tensors="pt", add_special_tokens=not job["chat"])
        return model(**rows).logits[:, 0].tolist()


def speak(job: dict[str, Any]) -> list[list[int]]:
    """What a policy folder writes after each prompt, greedily; prompts of unequal length in one batch."""
    model = AutoModelForCausalLM.from_pretrained(job["folder"], dtype=torch.float32).eval()
    reads = AutoTokenizer.from_pretrained(job["folder"], padding_side="left")
    asked = [[{"role": "user", "content": prompt}] for prompt in job["prompts"]]
    rows: Any = reads.apply_chat_template(
        asked, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
    )
    ids = model.generate(**rows, max_new_tokens=job["time"], do_sample=False)[:, rows["input_ids"].shape[1] :]
    return ids.tolist()


if __name__ == "__main__":
    jobs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    done = {name: {"train": train, "score": score, "speak": speak}[job["kind"]](job) for name, job in jobs.items()}
    Path(sys.argv[2]).write_text(json.dumps({"trl": trl.__version__, **done}), encoding="utf-8")
