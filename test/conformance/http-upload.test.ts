import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFront, type Front } from '../../sim/http/front.ts'
import { type EngineResult, SimConnectionError, type SimRequest } from '../../sim/types.ts'
import { type RawTarget, readable, toWire, writeRaw } from '../sim/http/raw-client.ts'
import {
  comparableHeaders,
  engineSaid,
  isMadeByFront,
  multipartBody,
  type Part,
  parseAnswer,
  type Recorded,
  recordedAnswer,
  recordedRequest,
  recording,
} from '../sim/http/recording.ts'
import { type ScriptedEngine, scriptedEngine } from '../sim/http/scripted-engine.ts'

const boundary = '----cap7d93b1'
const whole: Part[] = [
  { name: 'content', value: 'iso' },
  { name: 'filename', value: '<374784 bytes>', filename: 'nobound.iso', ctype: 'application/octet-stream' },
]

/** The bodies which the recording only describes in words. */
const described: Record<string, Buffer> = {
  'no boundary': multipartBody(whole, boundary),
  'quoted boundary': multipartBody(whole, boundary),
  'Transfer-Encoding: chunked': multipartBody(whole, boundary),
  'Expect: 100-continue': multipartBody(whole, boundary),
  'Content-Length too small': multipartBody(whole, boundary),
  'connection dropped midway: Content-Length too big': multipartBody(whole, boundary),
  'lower-case header names in parts': multipartBody(whole, boundary, { lowerCase: true }),
  'part Content-Type before Content-Disposition': multipartBody(whole, boundary, { typeFirst: true }),
}

describe.each([8, 9] as const)('08-iso-upload, PVE %d', (version) => {
  const all = recording(version, '08-iso-upload')
  const exchanges = all.filter(({ request }) => request?.method === 'POST')
  let said: EngineResult
  let engine: ScriptedEngine
  let front: Front
  let impatient: Front
  let target: RawTarget
  let impatientTarget: RawTarget

  beforeAll(async () => {
    engine = scriptedEngine({
      version,
      answer: () => said,
      precheck: () => (said.emptyBody && [401, 403].includes(said.status) ? said : undefined),
    })
    front = createFront(engine)
    // Where the recording shows silence for five seconds, a shorter patience shows the same.
    impatient = createFront(engine, { idleMs: 200 })
    const [patientPorts, impatientPorts] = await Promise.all([front.listen(), impatient.listen()])
    target = { url: patientPorts.endpoints[0]?.url ?? '', ca: patientPorts.ca }
    impatientTarget = { url: impatientPorts.endpoints[0]?.url ?? '', ca: impatientPorts.ca }
  })
  afterAll(() => Promise.all([front.close(), impatient.close()]))

  it.each(exchanges.map((recorded, index) => ({ recorded, title: `${index} ${recorded.label}` })))(
    'answers alike: $title',
    async ({ recorded }) => {
      said = engineSaid(recorded)
      const request = requestOf(recorded)

      engine.calls.length = 0
      engine.slept.length = 0
      if (recorded.response?.error) {
        await expect(front.handle('pve1', request)).rejects.toThrow(SimConnectionError)
        expect(engine.slept).toEqual([5000])
        const raw = await writeRaw(impatientTarget, toWire(request))
        expect(raw).toMatchObject({ text: '', closed: true })
        expect(engine.calls).toEqual([])
        return
      }
      expectAlike(await front.handle('pve1', request), recorded)
      expectCalled(recorded)
      expect(engine.slept).toEqual((recorded.took ?? 0) > 2.9 ? [3000] : [])

      engine.calls.length = 0
      const raw = await writeRaw(target, toWire(request))
      expectAlike(parseAnswer(readable(raw.text)), recorded)
      expectCalled(recorded)
    },
  )

  function expectCalled(recorded: Recorded) {
    const { status } = recordedAnswer(recorded)
    if (isMadeByFront(recorded) || status === 401 || status === 403) return expect(engine.calls).toEqual([])
    const log = all.find(({ label }) => label === `${recorded.label}: log`)
    const logged = /file size is: (\d+)/.exec(JSON.stringify(log?.response?.body ?? ''))?.[1]
    // The size in the task's log tells what the reader took for the file.
    if (logged) expect(engine.calls[0]?.upload?.bytes.length).toBe(Number(logged))
    return expect(engine.calls).toHaveLength(1)
  }
})

function requestOf(recorded: Recorded): SimRequest {
  const request = recordedRequest(recorded)
  const body = described[recorded.label ?? '']
  return body ? { ...request, body } : request
}

function expectAlike(answer: ReturnType<typeof parseAnswer>, recorded: Recorded) {
  const wanted = recordedAnswer(recorded)
  expect([answer.status, answer.reason]).toEqual([wanted.status, wanted.reason])
  expect(comparableHeaders(answer, recorded)).toEqual(comparableHeaders(wanted, recorded))
  if (isMadeByFront(recorded)) expect(answer.body).toBe(wanted.body)
}
