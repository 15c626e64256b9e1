import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFront, type Front } from '../../sim/http/front.ts'
import type { EngineResult } from '../../sim/types.ts'
import { type RawTarget, readable, toWire, writeRaw } from '../sim/http/raw-client.ts'
import {
  comparableHeaders,
  engineSaid,
  isMadeByFront,
  parseAnswer,
  type Recorded,
  recordedAnswer,
  recordedRequest,
  recording,
} from '../sim/http/recording.ts'
import { type ScriptedEngine, scriptedEngine } from '../sim/http/scripted-engine.ts'

/** Doors the simulator does not have, or that are opened below in a way of their own. */
const elsewhere = new Set(['token straight to pvedaemon:85', 'plain HTTP to 8006'])

describe.each([8, 9] as const)('02-auth-and-routing, PVE %d', (version) => {
  const exchanges = recording(version, '02-auth-and-routing').filter(
    ({ label }) => label && !elsewhere.has(label),
  )
  let said: EngineResult
  let engine: ScriptedEngine
  let front: Front
  let target: RawTarget

  beforeAll(async () => {
    // Behind the front stands what was recorded; the front has to make the same answer of it.
    engine = scriptedEngine({ version, answer: () => said })
    front = createFront(engine)
    const { endpoints, ca } = await front.listen()
    target = { url: endpoints[0]?.url ?? '', ca }
  })
  afterAll(() => front.close())

  it.each(exchanges.map((recorded, index) => ({ recorded, title: `${index} ${recorded.label}` })))(
    'answers alike: $title',
    async ({ recorded }) => {
      said = engineSaid(recorded)
      engine.calls.length = 0
      engine.slept.length = 0
      const request = recordedRequest(recorded)
      const answer = await front.handle('pve1', request)
      expectAlike(answer, recorded)
      expect(engine.calls.length).toBe(isMadeByFront(recorded) ? 0 : 1)
      expect(engine.slept).toEqual((recorded.took ?? 0) > 2.9 ? [3000] : [])

      const raw = await writeRaw(target, toWire(request))
      expectAlike(parseAnswer(readable(raw.text)), recorded)
    },
  )

  it('sends plain HTTP to the same place over HTTPS', async () => {
    const recorded = recording(version, '02-auth-and-routing').find(
      ({ label }) => label === 'plain HTTP to 8006',
    )
    if (!recorded) throw new Error('not recorded')
    const request = recordedRequest(recorded)
    const raw = await writeRaw(
      target,
      toWire({ ...request, headers: { ...request.headers, host: '127.0.0.1:8006' } }),
      undefined,
      { plain: true },
    )
    expectAlike(parseAnswer(raw.text), recorded)
  })
})

function expectAlike(answer: ReturnType<typeof parseAnswer>, recorded: Recorded) {
  const wanted = recordedAnswer(recorded)
  expect([answer.status, answer.reason]).toEqual([wanted.status, wanted.reason])
  expect(comparableHeaders(answer, recorded)).toEqual(comparableHeaders(wanted, recorded))
  if (isMadeByFront(recorded)) expect(answer.body).toBe(wanted.body)
}
