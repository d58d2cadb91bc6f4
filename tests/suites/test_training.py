from __future__ import annotations

from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from robotrials.suites.training import TrainingFolder, is_whole
from tests.suites.checkpoints import write_checkpoint


def test_checkpoints_come_by_step_and_the_link_to_the_last_is_none(tmp_path: Path) -> None:
    for step in (20, 10, 100):
        write_checkpoint(tmp_path, step)
    assert [checkpoint.step for checkpoint in TrainingFolder(tmp_path).checkpoints()] == [10, 20, 100]


@pytest.mark.parametrize(
    "missing",
    ["training_state/training_step.json", "pretrained_model/config.json", "pretrained_model/model.safetensors"],
)
def test_a_checkpoint_that_lacks_a_part_is_not_taken(tmp_path: Path, missing: str) -> None:
    folder = write_checkpoint(tmp_path, 10)
    assert is_whole(folder)
    (folder / missing).unlink()
    assert not is_whole(folder)
    assert TrainingFolder(tmp_path).last is None


def test_half_of_the_weights_is_not_taken(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, 10)
    weights = folder / "pretrained_model/model.safetensors"
    whole = weights.read_bytes()
    for size in (0, 4, 20, len(whole) - 1):
        weights.write_bytes(whole[:size])
        assert not is_whole(folder)
    weights.write_bytes(whole)
    assert is_whole(folder)


def test_half_of_the_step_file_is_not_taken(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, 10)
    (folder / "training_state/training_step.json").write_text('{"st')
    assert not is_whole(folder)


def test_a_folder_without_a_checkpoint_is_set_aside_and_one_with_is_kept(tmp_path: Path) -> None:
    stopped = tmp_path / "act_pusht"
    for number in (1, 2):
        (stopped / "checkpoints").mkdir(parents=True)
        assert TrainingFolder(stopped).set_aside() == tmp_path / f"act_pusht.stopped-{number}"
        assert not stopped.exists()
    write_checkpoint(stopped, 10)
    assert TrainingFolder(stopped).set_aside() is None
    assert stopped.exists()


def test_a_training_on_another_dataset_is_not_gone_on_with(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 10, dataset="me/other")
    with pytest.raises(ConfigError, match=r"training on me/other, not on lerobot/pusht"):
        TrainingFolder(tmp_path).require_dataset("lerobot/pusht")
