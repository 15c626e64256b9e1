import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { BasicTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CREATE_STEPS, DELETE_STEPS } from '../../lib/record.ts'
import type { Carrier } from '../../lib/tracing.ts'
import { openGcLab } from '../lab/gc-lab.ts'
import { atStep, type Lab, type LabOptions, type Outside, openLab, settled } from '../lab/lab.ts'
import { collectSpans, type Spans } from '../lab/spans.ts'

let spans: Spans
let lab: Lab
const told: (Carrier | undefined)[] = []
/** Notes what outcome events carry. */
const listening = (outside: Outside): Outside => ({
  ...outside,
  surroundings: {
    ...outside.surroundings,
    publish: async (event, carrier) => {
      told.push(carrier)
      await outside.surroundings.publish(event)
    },
  },
})
const open = async (options: LabOptions = {}) => {
  lab = await openLab({ interpose: listening, ...options })
}
beforeEach(() => {
  told.length = 0
  spans = collectSpans()
})
afterEach(async () => {
  await spans.stop()
  await lab?.close()
})

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PUBLISHER = 'b7ad6b7169203331'
const published = { traceparent: `00-${TRACE}-${PUBLISHER}-01`, tracestate: 'shop=1' }
const request = (uid: string, spec: object = {}) =>
  JSON.stringify({
    type: 'ProxyRequested',
    uid,
    name: uid,
    spec: { zone: 'lab-1', image: 'debian-12', ...spec },
  })
const deletion = (uid: string) => JSON.stringify({ type: 'ProxyDeletionRequested', uid })

const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId
const traceOf = (span: ReadableSpan | undefined) => span?.spanContext().traceId
const parentOf = (span: ReadableSpan) =>
  spans.all().find((other) => idOf(other) === span.parentSpanContext?.spanId)
const stepsSpanned = () =>
  new Set(
    spans
      .all()
      .flatMap(({ name, kind }) =>
        kind === SpanKind.CONSUMER ? (/^step (\w+)$/.exec(name)?.[1] ?? []) : [],
      ),
  )
const named = (name: string) => {
  const [span] = spans.named(name)
  if (!span)
    throw new Error(`no span ${name} among ${[...new Set(spans.all().map((one) => one.name))].join(', ')}`)
  return span
}

describe('the trace of a proxy', () => {
  it('is its publisher’s, from the request to the last thing that is left of it, with each step and each call', async () => {
    await open()
    lab.queues.publish('create', request('alpha'), published)
    await settled(lab, 'alpha')
    lab.queues.publish('delete', deletion('alpha'), published)
    await settled(lab, 'alpha')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')

    expect(new Set(spans.all().map(traceOf))).toEqual(new Set([TRACE]))
    expect([...stepsSpanned()].sort()).toEqual([...CREATE_STEPS, ...DELETE_STEPS].sort())
    const ofKind = (kind: SpanKind) => spans.all().filter((span) => span.kind === kind)
    expect(ofKind(SpanKind.CONSUMER)).toHaveLength(lab.decisions.length)
    expect(ofKind(SpanKind.CLIENT)).toHaveLength(lab.calls.length)
    // A Continue for each delivery that went on, and two outcomes.
    expect(spans.named('publish outcomes')).toHaveLength(2)
    expect(ofKind(SpanKind.PRODUCER).length).toBeGreaterThan(lab.decisions.length - 6)
    for (const call of ofKind(SpanKind.CLIENT)) expect(parentOf(call)?.kind).toBe(SpanKind.CONSUMER)
    for (const send of ofKind(SpanKind.PRODUCER)) expect(parentOf(send)?.kind).toBe(SpanKind.CONSUMER)
  })

  it('has its deliveries side by side under the request that they serve, not each within the last', async () => {
    await open()
    lab.queues.publish('create', request('alpha'), published)
    await settled(lab, 'alpha')
    const asked = named('process ProxyRequested')
    expect(asked.parentSpanContext).toMatchObject({ spanId: PUBLISHER, isRemote: true })
    const steps = spans.all().filter(({ name }) => name.startsWith('step '))
    expect(steps.length).toBeGreaterThan(10)
    expect(new Set(steps.map((span) => span.parentSpanContext?.spanId))).toEqual(new Set([idOf(asked)]))
  })

  it('says of a delivery and of a call what they were about', async () => {
    await open()
    lab.queues.publish('create', request('alpha'), published)
    const { place } = await settled(lab, 'alpha')
    expect(named('step clone').attributes).toMatchObject({
      'messaging.system': 'aws_sqs',
      'messaging.destination.name': 'create',
      'egress.uid': 'alpha',
      'egress.step': 'clone',
      'egress.turn': expect.any(Number),
      'egress.outcome': 'task',
      'egress.attempt': 1,
    })
    const clone = named('POST /nodes/{node}/qemu/{vmid}/clone')
    expect(clone.attributes).toEqual({
      'http.request.method': 'POST',
      'url.template': '/api2/json/nodes/{node}/qemu/{vmid}/clone',
      'server.address': expect.stringMatching(/^pve\d$/),
      'server.port': 8006,
      'http.response.status_code': 200,
      'proxmox.node': place?.node,
      'proxmox.vmid': place?.template,
      'proxmox.upid': expect.stringMatching(/^UPID:.*:qmclone:/),
    })
    expect(named('GET /cluster/nextid').attributes).not.toHaveProperty('proxmox.vmid')
  })

  it('begins anew where an event carries none, apart for each proxy', async () => {
    await open()
    lab.request('alpha')
    lab.request('beta')
    await settled(lab, 'alpha')
    await settled(lab, 'beta')
    const tracesOf = (uid: string) =>
      new Set(
        spans
          .all()
          .filter(({ attributes }) => attributes['egress.uid'] === uid)
          .map(traceOf),
      )
    expect(tracesOf('alpha').size).toBe(1)
    expect(tracesOf('beta').size).toBe(1)
    expect([...tracesOf('alpha')]).not.toEqual([...tracesOf('beta')])
    expect(spans.named('process ProxyRequested').map((span) => span.parentSpanContext)).toEqual([
      undefined,
      undefined,
    ])
  })

  it('is carried on by what is told to the world, and by dead letters', async () => {
    await open({ passwords: {} })
    const auth = { username: 'a', passwordParameter: '/egress/test/passwords/none' }
    lab.queues.publish('create', request('alpha', { proxy: { auth } }), published)
    await settled(lab, 'alpha')
    expect(lab.row('alpha')?.phase).toBe('Failed')
    const letter = lab.queues.deadLetters[0]?.obituary
    expect(letter?.carrier).toEqual({
      traceparent: `00-${TRACE}-${idOf(named('process ProxyRequested'))}-01`,
      tracestate: 'shop=1',
    })
    expect(told).toEqual([
      { traceparent: `00-${TRACE}-${idOf(named('publish outcomes'))}-01`, tracestate: 'shop=1' },
    ])
    // A redrive hands on what the letter carries.
    const { turn } = lab.row('alpha') ?? {}
    lab.queues.publish('create', JSON.stringify({ type: 'Resume', uid: 'alpha', turn }), letter?.carrier)
    await lab.run()
    expect(traceOf(named('process Resume'))).toBe(TRACE)
    expect(new Set(spans.all().map(traceOf))).toEqual(new Set([TRACE]))
  })
})

describe('a span', () => {
  it('of a call that failed has its status and its code, and none of its words', async () => {
    await open()
    lab.request('alpha')
    const { place } = await atStep(lab, 'alpha', 'start')
    lab.sim.faults.add({
      match: { method: 'POST', path: 'status/start$' },
      times: 1,
      effect: { kind: 'answer', answer: { status: 500, message: 'hunter2' } },
    })
    await settled(lab, 'alpha')
    const [start] = spans.named('POST /nodes/{node}/qemu/{vmid}/status/start')
    expect(start?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'Unknown' })
    expect(start?.attributes).toMatchObject({
      'error.type': 'Unknown',
      'http.response.status_code': 500,
      'proxmox.vmid': place?.vmid,
    })
    const tried = spans.named('step start').find(({ attributes }) => attributes['egress.outcome'] === 'back')
    expect(tried?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'Unknown' })
    expect(words(spans.all())).not.toContain('hunter2')
  })

  it('of a call without an answer has its code alone', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'start')
    for (const { name } of lab.world.nodes) lab.sim.setNode(name, 'unreachable')
    await lab.run(() => lab.decisions.at(-1)?.code === 'Unreachable')
    const dead = spans.all().filter(({ attributes }) => attributes['error.type'] === 'Unreachable')
    expect(dead.filter(({ kind }) => kind === SpanKind.CLIENT).length).toBeGreaterThan(0)
    for (const { attributes } of dead) expect(attributes).not.toHaveProperty('http.response.status_code')
  })

  it('and a measurement hold no secret: no token, no password, no user-data, nothing of a body that cannot be read', async () => {
    await open({ passwords: { '/egress/test/passwords/a': 'canary.password' } })
    const auth = { username: 'canary-user', passwordParameter: '/egress/test/passwords/a' }
    const userData = '#cloud-config\nwrite_files:\n  - path: /canary-user-data\n    content: x\n'
    lab.queues.publish('create', request('alpha', { proxy: { auth }, userData }), published)
    await settled(lab, 'alpha')
    lab.queues.publish('create', '{"type":"ProxyRequested","password":"canary-body"}')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Ready')
    expect(lab.queues.deadLetters).toHaveLength(1)
    const said = words(spans.all()) + JSON.stringify(lab.measurements)
    const [, secret = ''] = lab.world.tokens.egress.split('=')
    expect(secret.length).toBeGreaterThan(10)
    for (const canary of [secret, 'canary']) expect(said).not.toContain(canary)
    expect(said).toContain('alpha')
  })
})

describe('a run of gc', () => {
  it('has its calls in a trace of its own, and what it sends begins one for each proxy, linked to the run', async () => {
    const gcLab = await openGcLab()
    lab = gcLab
    for (const uid of ['alpha', 'beta']) {
      lab.request(uid)
      await settled(lab, uid)
      lab.ledger.drop(uid)
    }
    await gcLab.gc()
    await gcLab.grace()
    await gcLab.gc()
    await lab.run()
    const run = spans.named('gc').at(-1)
    const calls = spans.all().filter(({ kind, parentSpanContext }) => {
      return kind === SpanKind.CLIENT && parentSpanContext?.spanId === idOf(run)
    })
    expect(calls.length).toBeGreaterThan(3)
    const sent = spans.all().filter(({ attributes }) => {
      return attributes['egress.message'] === 'Orphan' && attributes['messaging.operation.type'] === 'send'
    })
    expect(sent).toHaveLength(2)
    expect(new Set([...sent.map(traceOf), traceOf(run)]).size).toBe(3)
    for (const span of sent) {
      expect(span.links.map((link) => link.context.spanId)).toEqual([idOf(run)])
      const steps = spans.named('step destroy').filter((step) => traceOf(step) === traceOf(span))
      expect(steps.length).toBeGreaterThan(0)
    }
  })
})

describe('an SDK that throws', () => {
  it.each(['onStart', 'onEnd'] as const)('%s holds up no proxy', async (hook) => {
    await spans.stop()
    let thrown = 0
    const broken = {
      onStart() {},
      onEnd() {},
      forceFlush: async () => {},
      shutdown: async () => {},
      [hook]() {
        thrown += 1
        throw new Error('the collector is gone')
      },
    }
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [broken] }))
    await open()
    lab.request('alpha')
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
    expect(thrown).toBeGreaterThan(10)
    trace.disable()
  })
})

describe('without an SDK', () => {
  it('no message carries anything', async () => {
    await spans.stop()
    await open()
    lab.queues.publish('create', request('alpha'), published)
    const sent: object[] = []
    const { send } = lab.queues
    lab.queues.send = async (...message) => {
      sent.push(message[2])
      return send(...message)
    }
    await settled(lab, 'alpha')
    expect(told).toEqual([undefined])
    expect(sent.length).toBeGreaterThan(10)
    expect(sent.filter((options) => 'carrier' in options)).toEqual([])
  })
})

/** Everything that a collector is given of the spans. */
const words = (all: readonly ReadableSpan[]) =>
  JSON.stringify(
    all.map(({ name, attributes, events, status, links }) => ({
      name,
      attributes,
      events,
      status,
      links: links.map(({ attributes }) => attributes),
    })),
  )
