import { AsyncLocalStorage } from 'node:async_hooks'
import type { RawAnswer } from '../../lib/proxmox/index.ts'
import type { Delivery } from '../../lib/queue.ts'
import type { Side } from '../../lib/record.ts'
import { type Lab, type LabOptions, openLab } from '../lab/lab.ts'
import { type Deed, throughEffects, turnIn } from './effects.ts'
import { type Shown, type Watch, watch } from './invariants.ts'

/** What becomes of a deed, and of the invocation that does it. */
export type Fate =
  | { kind: 'done' }
  /** The process dies right before or right after it; a call that was sent goes on in Proxmox. */
  | { kind: 'dies'; when: 'before' | 'after' }
  /** The process dies with a call of Proxmox under way, which is carried out so long after. */
  | { kind: 'dies'; when: 'under way'; ms: number }
  /** The process stands still before it, whatever the clock says, and then goes on as if nothing had been. */
  | { kind: 'sleeps'; ms: number }
  /** It is done, but the function is told otherwise: the answer was lost on the way back. */
  | { kind: 'answer lost' }
  /** It is not done, and the function is told so: a throttled write, a connection refused. */
  | { kind: 'refused' }
  /** A call of Proxmox is answered with 596, and carried out so long after that. */
  | { kind: 'late'; ms: number }
  /** The SDK sends its writes twice, since the first answer was lost, and the function hears the second. */
  | { kind: 'sent twice' }

/** `atMs` since the stage was opened, by a clock that is right. */
export type Numbered = Deed & { number: number; side: Side; atMs: number }

type Invocation = {
  side: Side
  id: number
  dead: boolean
  skewMs: number
  shown: Shown
  sentTwice: boolean
  end: () => void
}

export type StageOptions = LabOptions & {
  fate?: (deed: Numbered) => Fate
  /** How wrong the clock of an invocation is. */
  skewOf?: () => number
  /** How long the queue holds back what was sent, over the delay asked for, and how many copies it hands out. */
  post?: () => number[]
}

/** A lab whose functions run as on Lambda: many at once, each in a process that may die. */
export type Stage = {
  lab: Lab
  watch: Watch
  /** Deeds so far, when counting is on. */
  deeds(): Numbered[]
  count(on: boolean): void
  /** Puts an event into the queue, so long from now. */
  publish(side: Side, event: object, delayMs?: number): void
  /** Runs invocations at once for whatever is visible, until nothing is left to do or `done`. @throws {Error} a broken promise */
  run(done?: () => boolean, limitMs?: number): Promise<void>
  story(): string
}

const LAST_LINES = 30
const LINES_AROUND = 8
const MARKED = /◀──|✗ BROKEN|carries out|awake/

export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const { fate = () => ({ kind: 'done' }) as const, skewOf = () => 0, post } = options
  const inside = new AsyncLocalStorage<Invocation>()
  const turnInHand = new AsyncLocalStorage<number | undefined>()
  const lines: string[] = []
  const deeds: Numbered[] = []
  const waiting: { at: number; side: Side; body: string }[] = []
  const running = new Set<Promise<void>>()
  let counting = false
  let invocations = 0
  let startedAt = 0
  let lookedAt: number | undefined

  async function perform<T>(deed: Deed, run: () => Promise<T>): Promise<T> {
    const invocation = inside.getStore()
    if (!invocation) return run()
    if (invocation.dead) return never()
    const numbered = {
      ...deed,
      number: counting ? deeds.length + 1 : 0,
      side: invocation.side,
      atMs: lab.clock.now() - startedAt,
    }
    if (counting) deeds.push(numbered)
    const end = counting ? fate(numbered) : ({ kind: 'done' } as const)
    const number = counting ? `${String(numbered.number).padStart(4)} ` : ''
    tell(invocation, `${number}${deed.what}${end.kind === 'done' ? '' : `    ◀── ${inWords(end)}`}`)
    if (end.kind === 'dies' && end.when === 'before') return die(invocation)
    if (end.kind === 'dies' && end.when === 'under way') {
      carryOutLater(deed, end.ms, run)
      return die(invocation)
    }
    watching.judgeTurn(turnInHand.getStore(), deed.sends)
    if (end.kind === 'refused') throw refused()
    if (end.kind === 'sleeps') await sleepBefore(deed, end.ms)
    if (invocation.dead) return never()
    if (deed.request) watching.judge(deed.request, invocation.shown)
    if (end.kind === 'late') {
      carryOutLater(deed, end.ms, run)
      // Only a call of Proxmox is ever late, and this is what pveproxy answers then.
      return late as T
    }
    invocation.sentTwice = end.kind === 'sent twice'
    const result = await run()
    invocation.sentTwice = false
    if (deed.request) {
      // What a request of Proxmox comes back with is an answer; `perform` cannot say so for every deed.
      const answer = result as RawAnswer
      watching.note(deed.request, answer, invocation.shown)
      if (answer.status >= 400) tell(invocation, `       ${answer.status} ${answer.reason}`)
    }
    look(deed)
    if (end.kind === 'dies') return die(invocation)
    if (end.kind === 'answer lost') throw lost()
    return invocation.dead ? never() : result
  }

  /** The world changes by deeds and with time: what only read, at a moment that was looked at, leaves nothing new to see. */
  function look({ what, changes }: Deed): void {
    const now = lab.clock.now()
    if (!changes && lookedAt === now) return
    lookedAt = now
    watching.look()
    if (what.startsWith('ledger.save') || what.startsWith('claims.free')) watching.lookAtRows()
  }

  /** Proxmox goes on with a call that nobody waits for any more. */
  function carryOutLater<T>(deed: Deed, ms: number, run: () => Promise<T>): void {
    const arrived = watching.awaits(deed.request)
    lab.clock.after(ms, () => {
      line(`Proxmox    carries out ${deed.what}`)
      arrived()
      void run()
        .catch(nobodyListens)
        .then(() => watching.look())
    })
  }

  async function sleepBefore(deed: Deed, ms: number): Promise<void> {
    const arrived = watching.awaits(deed.request)
    await lab.clock.sleep(ms)
    arrived()
    line(`${'awake'.padEnd(10)} and goes on with ${deed.what}`)
  }

  function die(invocation: Invocation): Promise<never> {
    invocation.dead = true
    invocation.end()
    return never()
  }

  function tell({ side, id }: { side: Side; id: number }, words: string): void {
    line(`${`${side} #${id}`.padEnd(11)}${words}`)
  }

  function line(words: string): void {
    lines.push(`${((lab.clock.now() - startedAt) / 1000).toFixed(1).padStart(9)} s  ${words}`)
  }

  const lab = await openLab({
    ...options,
    skewMs: () => inside.getStore()?.skewMs ?? 0,
    timesSent: () => (inside.getStore()?.sentTwice ? 2 : 1),
    interpose: (world) => {
      const { surroundings: plain, exchange } = options.interpose?.(world) ?? world
      const log: typeof plain.log = (decision) => {
        const { uid = 'no row', turn, step = '', outcome, reason = '', code } = decision
        const invocation = inside.getStore()
        const about = `${uid}${turn === undefined ? '' : `/${turn}`}${step === '' ? '' : `/${step}`}`
        if (invocation)
          tell(invocation, `  ═ ${about}: ${outcome}${code === undefined ? '' : ` ${code}`}, ${reason}`)
        plain.log(decision)
      }
      const outside = { surroundings: { ...plain, log }, exchange }
      const { send } = plain.queues
      if (!post) return throughEffects(outside, perform)
      const queues = {
        ...plain.queues,
        async send(side: Side, message: object, { delaySeconds }: { delaySeconds: number }) {
          const [first = 0, ...copies] = post()
          for (const ms of [first, ...copies]) {
            if (ms === 0) await send(side, message, { delaySeconds })
            else
              waiting.push({
                at: lab.clock.now() + delaySeconds * 1000 + ms,
                side,
                body: JSON.stringify(message),
              })
          }
        },
      }
      return throughEffects({ ...outside, surroundings: { ...outside.surroundings, queues } }, perform)
    },
  })
  const watching = watch(lab, (words) => line(`✗ BROKEN   ${words}`))
  const timeoutMs = lab.config.timings.functionTimeoutSeconds * 1000
  startedAt = lab.clock.now()

  function invoke(side: Side, deliveries: Delivery[]): Promise<void> {
    const abort = new AbortController()
    const skewMs = skewOf()
    return new Promise<void>((resolve) => {
      const alarms: (() => void)[] = []
      const end = () => {
        for (const callOff of alarms) callOff()
        resolve()
      }
      const invocation: Invocation = {
        side,
        id: ++invocations,
        dead: false,
        skewMs,
        shown: { uids: new Map(), changes: new Set() },
        sentTwice: false,
        end,
      }
      alarms.push(lab.clock.after(timeoutMs - 5000, () => abort.abort()))
      const limits = { signal: abort.signal, mutateUntilMs: lab.clock.now() + skewMs + timeoutMs - 7000 }
      inside.run(invocation, () => {
        for (const { body, receiveCount } of deliveries)
          tell(invocation, `gets ${body.slice(0, 60)} (${receiveCount})`)
        Promise.all(deliveries.map((delivery) => handle(side, delivery, limits))).then(
          end,
          (error: unknown) => {
            watching.say(`an invocation threw: ${String(error)}`)
            end()
          },
        )
      })
    })
  }

  type Limits = { signal: AbortSignal; mutateUntilMs: number }

  /** What a worker throws, and a poller that cannot do what it was told, leave the message to its visibility time-out. */
  async function handle(side: Side, delivery: Delivery, limits: Limits) {
    try {
      await turnInHand.run(turnOfBody(delivery.body), () => settleOne(side, delivery, limits))
    } catch (error) {
      if (!(error instanceof Injected)) throw error
    }
  }

  async function settleOne(side: Side, delivery: Delivery, limits: Limits) {
    const verdict = await lab.workers[side](delivery, limits)
    // The queue's own poller does these after the function has answered; it dies as well.
    if (verdict.kind === 'back') {
      await perform({ what: `back in ${verdict.seconds} s`, changes: true }, () =>
        lab.queues.showAgainIn(side, delivery, verdict.seconds),
      )
      return
    }
    await perform({ what: 'acknowledge', changes: true }, async () => lab.queues.acknowledge(side, delivery))
  }

  function deliverPost(): void {
    for (const letter of waiting.filter(({ at }) => at <= lab.clock.now())) {
      waiting.splice(waiting.indexOf(letter), 1)
      lab.queues.publish(letter.side, letter.body)
    }
  }

  function start(): void {
    for (const side of ['create', 'delete'] as const) {
      for (let batch = lab.queues.receive(side); batch.length > 0; batch = lab.queues.receive(side)) {
        const invocation = invoke(side, batch)
        running.add(invocation)
        invocation.finally(() => running.delete(invocation))
      }
    }
  }

  return {
    lab,
    watch: watching,
    deeds: () => deeds,
    count(on) {
      counting = on
    },
    publish: (side, event, delayMs = 0) =>
      void waiting.push({ at: lab.clock.now() + delayMs, side, body: JSON.stringify(event) }),
    async run(done = () => false, limitMs = 30 * 24 * 3600_000) {
      const until = lab.clock.now() + limitMs
      for (;;) {
        if (watching.broken.length > 0) throw new Error(watching.broken.join('; '))
        if (done()) return
        deliverPost()
        start()
        const next = Math.min(lab.queues.nextAt() ?? Number.POSITIVE_INFINITY, ...waiting.map(({ at }) => at))
        if (running.size === 0 && next === Number.POSITIVE_INFINITY) return
        if (lab.clock.now() > until) throw new Error(`still at work after ${limitMs / 3600_000} h`)
        let callOff = () => {}
        const wake = new Promise<void>((resolve) => {
          if (next !== Number.POSITIVE_INFINITY)
            callOff = lab.clock.after(Math.max(0, next - lab.clock.now()), resolve)
        })
        await lab.clock.until(Promise.race([...running, wake]), limitMs)
        callOff()
      }
    },
    story: () => told(lines).join('\n'),
  }
}

/** What somebody did to the functions, with what went before and what came of it, and the end; the rest is left out. */
function told(lines: string[]): string[] {
  const marks = lines.flatMap((line, index) => (MARKED.test(line) ? [index] : []))
  const isTold = (index: number) =>
    index >= lines.length - LAST_LINES || marks.some((mark) => Math.abs(mark - index) <= LINES_AROUND)
  return lines.flatMap((line, index) => {
    if (isTold(index)) return [line]
    return index === 0 || isTold(index - 1) ? ['        …'] : []
  })
}

/** The turn that a Continue or Resume is for; an event is for none. */
function turnOfBody(body: string): number | undefined {
  return turnIn(JSON.parse(body))
}

/** A fate, for who reads the story. */
export function inWords(fate: Fate): string {
  switch (fate.kind) {
    case 'done':
      return 'is done'
    case 'dies':
      return fate.when === 'under way'
        ? `THE PROCESS DIES, and the call is carried out ${fate.ms / 1000} s later`
        : `THE PROCESS DIES right ${fate.when} it`
    case 'sleeps':
      return `THE PROCESS STANDS STILL for ${fate.ms / 1000} s before it`
    case 'answer lost':
      return 'is done, BUT THE ANSWER IS LOST'
    case 'refused':
      return 'IS REFUSED'
    case 'late':
      return `IS ANSWERED WITH 596, and carried out ${fate.ms / 1000} s later`
    case 'sent twice':
      return 'IS SENT TWICE by the SDK'
  }
}

const never = () => new Promise<never>(() => {})
const nobodyListens = () => undefined
const late: RawAnswer = { status: 596, reason: 'Connection timed out', headers: {}, body: '' }

/** What a test did to a deed; anything else that comes out of a worker is a defect. */
class Injected extends Error {
  readonly code: string
  readonly sent: boolean
  constructor(code: string, sent: boolean) {
    super(code.toLowerCase())
    this.code = code
    this.sent = sent
  }
}
const lost = () => new Injected('ECONNRESET', true)
const refused = () => new Injected('ECONNREFUSED', false)
