import { type Cluster, nodeOf } from './cluster.ts'
import { PveError, taskText } from './errors.ts'
import { type AnyProgram, type Go, next, type Program, type Run } from './program.ts'
import type { Task } from './state.ts'

export type Tasks = ReturnType<typeof createTasks>

const keptPerNode = 1000

/** Workers of the cluster: forked by a call, gone through their stages by the clock, and on disk at each stage. */
export function createTasks(cluster: () => Cluster, programs: Record<string, AnyProgram>) {
  const alarms = new Map<string, () => void>()

  const programOf = (task: Task): Program<unknown> => {
    const program = programs[task.type]
    if (!program) throw new Error(`no program for tasks of type ${task.type}`)
    return program as Program<unknown>
  }

  const runOf = (task: Task): Run<unknown> => ({
    cluster: cluster(),
    node: task.node,
    user: task.user,
    data: task.data,
    log: (line) => void task.log.push(line),
    warn(line) {
      task.log.push(`WARN: ${line}`)
      task.warnings += 1
    },
    unlock: (name) => unlock(task, name),
  })

  const unlock = (task: Task, name: string): void => {
    if (!task.locks.some((held) => held.name === name)) return
    task.locks = task.locks.filter((held) => held.name !== name)
    cluster().locks.release(name, task.upid)
  }

  const finish = (task: Task, failure?: string): void => {
    const { fault } = task
    const text = failure ?? (fault && 'exitText' in fault ? fault.exitText : undefined)
    if (text !== undefined) {
      task.log.push(`TASK ERROR: ${text}`)
      task.exitstatus = text
    } else if (task.warnings > 0) {
      task.log.push(`TASK WARNINGS: ${task.warnings}`)
      task.exitstatus = `WARNINGS: ${task.warnings}`
    } else {
      task.log.push('TASK OK')
      task.exitstatus = 'OK'
    }
    close(task)
  }

  const close = (task: Task): void => {
    alarms.get(task.upid)?.()
    alarms.delete(task.upid)
    task.endMs = cluster().clock.now()
    delete task.waiting
    for (const held of [...task.locks]) unlock(task, held.name)
    forgetOld(task.node)
    cluster().commit()
  }

  const forgetOld = (node: string): void => {
    const { tasks } = cluster().state
    const ended = Object.values(tasks).filter((task) => task.node === node && task.endMs !== undefined)
    for (const task of ended.slice(0, Math.max(0, ended.length - keptPerNode))) delete tasks[task.upid]
  }

  const fail = (task: Task, error: unknown): void => {
    const text = taskText(error)
    const { failed } = programOf(task)
    finish(task, failed ? failed(runOf(task), text) : text)
  }

  const step = (task: Task): void => {
    if (task.endMs !== undefined || cluster().closed()) return
    cluster().catchUp()
    if (task.fault && 'exitText' in task.fault && task.fault.effects === 'none') {
      finish(task)
      return
    }
    try {
      const stage = programOf(task).stages[task.stage]
      if (!stage) throw new Error(`task ${task.type} has no stage ${task.stage}`)
      proceed(task, stage(runOf(task)))
    } catch (error) {
      if (!(error instanceof PveError)) throw error
      fail(task, error)
    }
  }

  const proceed = (task: Task, decision: Go): void => {
    if (decision.go === 'end') {
      finish(task)
      return
    }
    task.stage = decision.stage
    if (decision.go === 'lock') {
      takeLock(task, decision)
      return
    }
    task.dueMs = cluster().clock.now() + decision.afterMs
    cluster().commit()
    if (decision.afterMs <= 0) step(task)
    else alarm(task)
  }

  const takeLock = (task: Task, want: Extract<Go, { go: 'lock' }>): void => {
    if (cluster().locks.tryTake(want.name, task.upid, want.mode)) {
      task.locks.push({ name: want.name, mode: want.mode })
      proceed(task, next(want.stage))
      return
    }
    task.log.push(
      want.name.startsWith('cfs:')
        ? `trying to acquire cfs lock '${want.name.slice(4)}' ...`
        : 'trying to acquire lock...',
    )
    task.waiting = {
      name: want.name,
      mode: want.mode,
      untilMs: cluster().clock.now() + want.timeoutMs,
      failure: want.failure,
    }
    cluster().commit()
    waitForLock(task)
  }

  const waitForLock = (task: Task): void => {
    const { waiting } = task
    if (!waiting) throw new Error(`${task.upid} waits for no lock`)
    const { locks, clock } = cluster()
    locks.take(waiting.name, task.upid, waiting.mode, waiting.untilMs - clock.now()).then((taken) => {
      if (task.endMs !== undefined || cluster().closed()) {
        if (taken) locks.release(waiting.name, task.upid)
        return
      }
      delete task.waiting
      if (!taken) {
        fail(task, new PveError(500, waiting.failure))
        return
      }
      task.locks.push({ name: waiting.name, mode: waiting.mode })
      if (!waiting.name.startsWith('cfs:')) task.log.push(' OK')
      proceed(task, next(task.stage))
    })
  }

  const alarm = (task: Task): void => {
    const { clock } = cluster()
    alarms.set(
      task.upid,
      clock.after(task.dueMs - clock.now(), () => step(task)),
    )
  }

  const armFault = (task: Task): void => {
    const { fault } = task
    if (!fault || !('killAtMs' in fault)) return
    const { clock } = cluster()
    clock.after(fault.killAtMs - clock.now(), () => kill(task, 'KILL'))
  }

  const kill = (task: Task, how: 'TERM' | 'KILL' | 'tool', signal = 9): void => {
    if (task.endMs !== undefined || cluster().closed()) return
    cluster().catchUp()
    if (how === 'KILL') {
      close(task)
      return
    }
    const program = programOf(task)
    const words =
      how === 'tool'
        ? program.toolKilled?.(runOf(task), task.stage, signal)
        : (program.interrupted?.(runOf(task), task.stage) ?? 'received interrupt')
    if (words !== undefined) fail(task, new PveError(500, words))
  }

  return {
    /** Starts a worker on the node and gives its UPID. Its first stage comes after the fork has taken its time. */
    fork(node: string, type: string, id: string, user: string, data: unknown, stage = 'begin'): string {
      const { state, clock, durations, faults } = cluster()
      const host = nodeOf(cluster(), node)
      const nowMs = clock.now()
      const pid = host.nextPid++
      const pstart = Math.floor((nowMs - host.bootMs) / 10)
      const hex = (value: number) => value.toString(16).toUpperCase().padStart(8, '0')
      const upid = `UPID:${node}:${hex(pid)}:${hex(pstart)}:${hex(Math.floor(nowMs / 1000))}:${type}:${id}:${user}:`
      const task: Task = {
        upid,
        node,
        pid,
        pstart,
        startMs: nowMs,
        type,
        id,
        user,
        log: [],
        warnings: 0,
        stage,
        dueMs: nowMs + durations.forkMs,
        data,
        locks: [],
      }
      const fault = faults.forTask(node, type, id, nowMs)
      if (fault) task.fault = fault
      state.tasks[upid] = task
      cluster().commit()
      alarm(task)
      armFault(task)
      return upid
    },

    kill(upid: string, how: 'TERM' | 'KILL' | 'tool', signal?: number): void {
      const task = cluster().state.tasks[upid]
      if (!task) throw new Error(`no such task: ${upid}`)
      kill(task, how, signal)
    },

    /** After the cluster was opened again: tasks hold their locks and go on where they were. */
    resume(): void {
      const running = Object.values(cluster().state.tasks).filter((task) => task.endMs === undefined)
      for (const task of running) {
        for (const held of task.locks) cluster().locks.tryTake(held.name, task.upid, held.mode)
      }
      for (const task of running) {
        if (task.waiting) waitForLock(task)
        else alarm(task)
        armFault(task)
      }
    },

    stopAll(): void {
      for (const callOff of alarms.values()) callOff()
      alarms.clear()
    },
  }
}
