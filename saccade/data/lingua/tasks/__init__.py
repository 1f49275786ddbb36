from saccade.data.lingua.tasks.acceptability import acceptability

TASKS = {"acceptable": acceptability}
