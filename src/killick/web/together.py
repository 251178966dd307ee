"""Requests that wait at the same time are answered in one go; each waits for its own answer."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class Together(Generic[Job, Answer]):
    """Answers jobs in batches: one batch at a time, and what comes meanwhile makes the next.

    It has no thread of its own: of those who wait, one does the work for all. So it serves threads of any event loop,
    and a lone caller waits for nobody.

    Args:
        answer: a list of jobs to a list of answers, in their order.
        size: the work in a job, in any unit.
        most: work in a batch, unless a single job is more.
    """

    def __init__(self, answer: Callable[[list[Job]], Sequence[Answer]], size: Callable[[Job], int], *, most: int):
        self.answer, self.size, self.most = answer, size, most
        self.waiting: list[tuple[Job, Future[Answer]]] = []
        self.queue, self.turn = Lock(), Lock()

    def __call__(self, job: Job) -> Answer:
        """The answer to a job; an error while it is worked on is raised in each whose job was in the batch."""
        mine: Future[Answer] = Future()
        with self.queue:
            self.waiting.append((job, mine))
        while not mine.done():
            with self.turn:
                if not mine.done():
                    self.work(self.take())
        return mine.result()

    def take(self) -> list[tuple[Job, "Future[Answer]"]]:
        """The oldest jobs that fit into a batch, at least one."""
        with self.queue:
            count, work = 1, self.size(self.waiting[0][0])
            for job, _ in self.waiting[1:]:
                work += self.size(job)
                if work > self.most:
                    break
                count += 1
            batch, self.waiting = self.waiting[:count], self.waiting[count:]
        return batch

    def work(self, batch: list[tuple[Job, "Future[Answer]"]]) -> None:
        """Answer a batch."""
        try:
            answers = self.answer([job for job, _ in batch])
            for (_, future), answer in zip(batch, answers, strict=True):
                future.set_result(answer)
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
