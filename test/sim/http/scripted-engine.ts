import type { Engine, EngineCall, EngineResult } from '../../../sim/types.ts'

export type ScriptedEngine = Engine & {
  /** Every call that got through, in order. */
  calls: EngineCall[]
  slept: number[]
  setReachability(node: string, state: 'up' | 'down' | 'unreachable' | 'hung'): void
}

/** An engine that says what it is told to say, so that a test of the front sees the front alone. Its clock does not wait. */
export function scriptedEngine(
  script: {
    version?: 8 | 9
    answer?: (call: EngineCall) => EngineResult | Promise<EngineResult>
    precheck?: (call: EngineCall) => EngineResult | undefined
    nodes?: string[]
  } = {},
): ScriptedEngine {
  const calls: EngineCall[] = []
  const slept: number[] = []
  const states = new Map<string, 'up' | 'down' | 'unreachable' | 'hung'>()
  const listeners = new Set<(node: string) => void>()
  return {
    version: script.version ?? 8,
    calls,
    slept,
    clock: {
      now: () => Date.UTC(2026, 11, 1, 1, 50, 49),
      sleep: async (ms) => {
        slept.push(ms)
      },
      after: () => () => {},
    },
    nodes: () => script.nodes ?? ['pve1'],
    async call(call) {
      calls.push(call)
      return script.answer?.(call) ?? { status: 200, data: null }
    },
    async precheckUpload(call) {
      return script.precheck?.(call)
    },
    reachability: (node) => states.get(node) ?? 'up',
    onReachability(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    setReachability(node, state) {
      states.set(node, state)
      for (const listener of listeners) listener(node)
    },
  }
}
