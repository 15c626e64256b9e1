import { expect, it } from 'vitest'
import { createEmf } from '../../lib/emf.ts'
import { measured } from '../../lib/metrics.ts'

function written(measurements: Parameters<ReturnType<typeof createEmf>>[0]) {
  const lines: string[] = []
  createEmf('prod', (line) => void lines.push(line))(measurements)
  return lines.map((line) => JSON.parse(line))
}

it('measurements become a line for each set of dimensions, as CloudWatch reads it', () => {
  const lines = written([
    measured('MessageAge', 1.5, { queue: 'create' }),
    measured('ProxyReady', 1, {}),
    measured('Lateness', 0.25, { queue: 'create' }),
    measured('TimeToReady', 41.2, {}),
  ])
  const directive = (by: string[], ...metrics: [Name: string, Unit: string][]) => ({
    Timestamp: expect.any(Number),
    CloudWatchMetrics: [
      {
        Namespace: 'egress-proxies',
        Dimensions: [['deployment', ...by]],
        Metrics: metrics.map(([Name, Unit]) => ({ Name, Unit })),
      },
    ],
  })
  expect(lines).toEqual([
    {
      _aws: directive(['queue'], ['MessageAge', 'Seconds'], ['Lateness', 'Seconds']),
      deployment: 'prod',
      queue: 'create',
      MessageAge: 1.5,
      Lateness: 0.25,
    },
    {
      _aws: directive([], ['ProxyReady', 'Count'], ['TimeToReady', 'Seconds']),
      deployment: 'prod',
      ProxyReady: 1,
      TimeToReady: 41.2,
    },
  ])
})

it('a line holds nothing of the line before it', () => {
  const lines = written([measured('Waits', 1, { why: 'task' }), measured('Waits', 1, { why: 'lock' })])
  expect(lines.map(({ why, Waits }) => [why, Waits])).toEqual([
    ['task', 1],
    ['lock', 1],
  ])
})

it('what is at hand beside the dimensions of a metric gets into none', () => {
  const decision = { code: 'InvalidEvent', reason: 'the password is hunter2', uid: 'a' }
  expect(measured('EventsRefused', 1, decision).by).toEqual({ code: 'InvalidEvent' })
})
