# _gpu.sh run PAGES... | strict | tests
set -u
export OFFLINE=1 TILED_MATMUL_BACKEND=gpu PYTHONPATH=$PWD/.site:$PWD/src JUPYTER_PATH=$PWD/.site/share/jupyter IPYTHONDIR=$PWD/.site/share/ipython PYTHONUNBUFFERED=1
make .site/.installed > $OUT/setup.log 2>&1
step=$1; shift
if [ $step = run ]; then
  for n in "$@"; do s=$SECONDS; python3 -m tiled_matmul notebooks run chapters/${n}_*.ipynb > $OUT/$n.log 2>&1 && echo "$n ok $((SECONDS-s)) s" || { echo "$n FAILED"; tail -15 $OUT/$n.log; }; rm -f $OUT/$n.log; done
  tar czf $OUT/chapters.tar.gz chapters
elif [ $step = strict ]; then
  python3 -m pytest -c tests/notebooks/nbval.ini --rootdir=. --nbval -n 8 --dist loadfile chapters/*.ipynb -q > $OUT/strict.log 2>&1; tail -40 $OUT/strict.log
elif [ $step = tests ]; then
  python3 -m pytest -q -m "gpu and not alone" -n 12 --dist worksteal $(grep -rl --include='test_*.py' 'mark\.gpu' tests) > $OUT/tests.log 2>&1; tail -15 $OUT/tests.log
fi
if [ $step = all ]; then
  for n in "$@"; do s=$SECONDS; python3 -m tiled_matmul notebooks run chapters/${n}_*.ipynb > $OUT/$n.log 2>&1 && echo "$n ok $((SECONDS-s)) s" || { echo "$n FAILED"; tail -15 $OUT/$n.log; }; rm -f $OUT/$n.log; done
  tar czf $OUT/chapters.tar.gz chapters
  s=$SECONDS
  python3 -m pytest -q -m "gpu and not alone" -n 6 --dist worksteal $(grep -rl --include='test_*.py' 'mark\.gpu' tests) > $OUT/tests.log 2>&1 & 
  python3 -m pytest -c tests/notebooks/nbval.ini --rootdir=. --nbval -n 8 --dist loadfile chapters/*.ipynb -q > $OUT/strict.log 2>&1; echo "strict $((SECONDS-s)) s"; tail -30 $OUT/strict.log
  wait; echo "tests $((SECONDS-s)) s"; tail -8 $OUT/tests.log
fi

if [ $step = answers ]; then
  make_tests="tests/grader/test_grader_gpu.py tests/grader/test_grader_on_gpu.py tests/microscope/test_forms.py"
  python3 -m pytest -q -m "not alone" -n 6 --dist worksteal $make_tests > $OUT/g.log 2>&1 & 
  cat > /tmp/answers.py <<'PY'
import sys, re, json, time
from pathlib import Path
from multiprocessing import Pool
sys.path.insert(0, "tests/grader")
def one(item):
    name, label, want, source = item
    from tiled_matmul.grader import on_gpu
    from tiled_matmul.grader.folders import exercise
    from tiled_matmul.grader.judge import judge
    e = exercise(name)
    try:
        with on_gpu.Gpu() as gpu:
            v = judge(e, f"{e.marker}\n{source}", seed=7, gpu=gpu)
    except Exception as error:
        return name, label, want, f"EXC {type(error).__name__} {error}"[:300], 0, 0
    return name, label, want, f"{v.status} {v.diagnosis} {v.message[:300]}", v.points, v.max_points
if __name__ == "__main__":
    import test_grader_answers as t
    from tiled_matmul.grader.folders import folders
    items = [(a.exercise, a.name, a.status, a.source) for a in t.ANSWERS if t.exercise(a.exercise).kind in ("cuda", "triton") and a.status == "PASS"]
    items += [(f.name, "solution", "PASS", f.text("answer.py")) for f in folders() if f.exercise.kind in ("cuda", "triton")]
    with Pool(6) as pool:
        for name, label, want, said, p, m in pool.imap_unordered(one, items):
            if p != m: print(name, label, said, p, m, flush=True)
    print(len(items), "right kernels launched")
PY
  s=$SECONDS; PYTHONPATH=$PYTHONPATH:tests/grader python3 /tmp/answers.py > $OUT/answers.log 2>&1; tail -40 $OUT/answers.log; echo "$((SECONDS-s)) s"
  wait; tail -12 $OUT/g.log
fi
