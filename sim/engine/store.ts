import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeAtomically } from './blobs.ts'
import type { State, Task } from './state.ts'

type Store = { load(): State | undefined; save(state: State): void }

/** The cluster on disk: its state in one file, and the tasks that have ended one a line in another. */
export function createStore(stateDir: string | undefined): Store {
  if (stateDir === undefined) return { load: () => undefined, save: () => {} }
  mkdirSync(stateDir, { recursive: true })
  const stateFile = join(stateDir, 'state.json')
  const taskFile = join(stateDir, 'tasks.jsonl')
  const archived = new Set<string>()

  return {
    load() {
      if (!existsSync(stateFile)) return undefined
      // Written by this very module: the shape is known.
      const state = JSON.parse(readFileSync(stateFile, 'utf8')) as State
      const ended: Record<string, Task> = {}
      for (const task of existsSync(taskFile) ? readTasks(taskFile) : []) {
        // Killed between the two files: the task goes on from its last stage.
        if (state.tasks[task.upid]) continue
        ended[task.upid] = task
        archived.add(task.upid)
      }
      return { ...state, tasks: { ...ended, ...state.tasks } }
    },

    save(state) {
      const running: Record<string, Task> = {}
      const ended: string[] = []
      for (const task of Object.values(state.tasks)) {
        if (task.endMs === undefined) running[task.upid] = task
        else if (!archived.has(task.upid)) {
          archived.add(task.upid)
          ended.push(`${JSON.stringify(task)}\n`)
        }
      }
      if (ended.length > 0) appendFileSync(taskFile, ended.join(''))
      writeAtomically(stateFile, JSON.stringify({ ...state, tasks: running }))
    },
  }
}

/** A process killed while it wrote leaves half a line at the end, which goes: that task still stands in the state. */
function readTasks(path: string): Task[] {
  const text = readFileSync(path, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  if (whole !== text) writeAtomically(path, whole)
  return whole
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Task) // written by this very module: the shape is known
}
