from threadpoolctl import threadpool_info, threadpool_limits

from dpcausal.regression.threads import one_thread


def blas_threads():
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


def test_linear_algebra_runs_on_one_thread_inside_and_as_before_afterwards():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with one_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
