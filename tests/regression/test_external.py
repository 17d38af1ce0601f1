import threading

import scipy.linalg  # noqa: F401  its BLAS is among those that are counted
from threadpoolctl import threadpool_info, threadpool_limits

from dpcausal.regression.external import one_thread


def blas_threads():
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


def test_linear_algebra_runs_on_one_thread_inside_and_as_before_afterwards():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with one_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


def test_a_call_that_ends_gives_no_other_call_more_threads_half_way():
    first_in, second_in, first_may_end, first_ended = (threading.Event() for _ in range(4))
    seen = []

    def first():
        with one_thread():
            first_in.set()
            first_may_end.wait(20)
        first_ended.set()

    def second():
        first_in.wait(20)
        with one_thread():
            second_in.set()
            first_ended.wait(20)
            seen.append(set(blas_threads()))

    before = blas_threads()  # as many as the machine has: a limit of this thread would bind the other two
    calls = [threading.Thread(target=call) for call in (first, second)]
    for call in calls:
        call.start()
    second_in.wait(0.3)  # until the second is inside beside the first, if it may be
    first_may_end.set()
    for call in calls:
        call.join()
    assert seen == [{1}] and blas_threads() == before
