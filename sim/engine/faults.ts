import type { EngineCall, FaultRule } from '../types.ts'
import type { Task } from './state.ts'

export type Faults = ReturnType<typeof createFaults>

type Kept = { rule: FaultRule & { id: string }; seen: number; struck: number }

const callEffects = new Set(['answer', 'connection', 'delay', 'hang'])
const agentEffects = new Set(['agentError', 'agentHangs'])

/** What goes wrong by script. */
export function createFaults() {
  const rules: Kept[] = []
  let made = 0

  const strike = (fits: (rule: FaultRule) => boolean): FaultRule | undefined => {
    for (const kept of rules) {
      const { skip = 0, times = Number.POSITIVE_INFINITY } = kept.rule
      if (kept.struck >= times || !fits(kept.rule)) continue
      kept.seen += 1
      if (kept.seen <= skip) continue
      kept.struck += 1
      return kept.rule
    }
    return undefined
  }

  const fitsCall = (rule: FaultRule, call: EngineCall): boolean => {
    const { method, path, node, params } = rule.match
    return (
      (method === undefined || method === call.method) &&
      (path === undefined || new RegExp(path).test(call.path)) &&
      (node === undefined || node === call.node) &&
      (params === undefined || new RegExp(params).test(JSON.stringify(call.params)))
    )
  }

  return {
    add(rule: FaultRule): string {
      const id = rule.id ?? `fault-${++made}`
      for (const source of [rule.match.path, rule.match.params]) if (source !== undefined) new RegExp(source)
      rules.push({ rule: { ...rule, id }, seen: 0, struck: 0 })
      return id
    },
    remove(id: string): void {
      const at = rules.findIndex((kept) => kept.rule.id === id)
      if (at < 0) throw new Error(`no such fault: ${id}`)
      rules.splice(at, 1)
    },
    list: (): (FaultRule & { id: string; struck: number })[] =>
      rules.map(({ rule, struck }) => ({ ...rule, struck })),
    clear: (): void => void rules.splice(0),

    forCall: (call: EngineCall): FaultRule | undefined =>
      strike((rule) => callEffects.has(rule.effect.kind) && fitsCall(rule, call)),

    forAgent: (call: EngineCall): FaultRule | undefined =>
      strike((rule) => agentEffects.has(rule.effect.kind) && fitsCall(rule, call)),

    forTask(node: string, type: string, id: string, nowMs: number): Task['fault'] {
      const rule = strike(({ effect, match }) => {
        if (effect.kind !== 'taskFails' && effect.kind !== 'taskKilled') return false
        return (
          (match.node === undefined || match.node === node) &&
          (match.taskType === undefined || match.taskType === type) &&
          (match.taskId === undefined || match.taskId === id)
        )
      })
      if (rule?.effect.kind === 'taskFails')
        return { exitText: rule.effect.exitText, effects: rule.effect.effects }
      if (rule?.effect.kind === 'taskKilled') return { killAtMs: nowMs + rule.effect.afterMs }
      return undefined
    },
  }
}
