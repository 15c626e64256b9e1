import type { Happening, Model } from './explore.ts'

/** Each rule of the protocol that can be left out, to see what goes wrong without it. */
export const RULES = {
  sendsBeforeSaving: 'the message is sent before the row is saved',
  judgesLeaseBeforeTurn: 'a message that is ahead of a held row goes back to its queue',
  checksTurn: 'a message acts in its own turn only',
  reportsInATurnOfItsOwn: 'the dead letter is written in the step report, not in the one that failed',
  countsOnlyTakeOvers: 'only expired leases count as crashes, not messages that found the row held',
  notesTakeOvers: 'who takes over an expired lease knows that a call may still be on its way',
  heeds596: 'after an answer that leaves it open, a call may still be on its way',
  sendsCallsOnce: 'a call that was not answered is not sent again by the client',
  letsGoBeforeFreeing: 'the row lets go of its place before the claim on the number is given back',
  destroysOnlySettled: 'nothing is stopped or destroyed while a call may still be on its way',
  releasesOnlySettled: 'absence proves nothing while a call may still be on its way',
  leavesReportAlone: 'a row that is about to be reported is not redriven',
  checksMark: 'a VM is changed only after its configuration showed our mark',
  checksVmidInMark: 'a mark counts only on the VM whose number it names',
  reservesOnlySettled: 'nothing is claimed or given back by reserve while another may still be at it',
  freesClaims: 'a deletion gives back every claim',
  redrivesByMessage: 'a redrive writes no row',
  stampsClaims:
    'a claim is given back only by who saw it as it is, and stamped anew by who takes or keeps it',
  claimsAnew: 'a number that the row itself has is kept as it was seen, and not taken anew',
} as const
export type Rule = keyof typeof RULES

type Step = 'reserve' | 'clone' | 'work' | 'stop' | 'destroy' | 'release' | 'report'
type Rest = 'blank' | 'ready' | 'failed' | 'deleted'
/** The row. Its turn is zero: turns are told from it, and move when it does. */
type Row = {
  step: Step | Rest
  wish: 'present' | 'absent'
  generation: number
  place: number
  failedStep: Step | undefined
  lease: number
  expired: boolean
  unsettled: boolean
  deliveries: number
}
type Call = { kind: 'clone' | 'change' | 'destroy'; at: number; generation: number }
/** What stands at a number: nothing, ours of a generation, or not ours: another's, or a copy that somebody made of ours. */
type Vm = 0 | 1 | 2 | 'another’s' | 'copy'
/** Who holds a number. Ours is told as the workers who saw it as it is now, a bit each: each taking stamps it anew. */
type Claim = 'nobody' | 'another' | number
type Message =
  | { kind: 'Continue' | 'Resume'; turn: number }
  | { kind: 'ask'; generation: number }
  | { kind: 'unask' }

/** What a worker means to do, having looked; then what it sends and how the row is to be saved. */
type Plan = {
  call?: Call & { shown: boolean }
  claim?: number
  /** It was ours before. */
  kept?: true
  free?: number
  bury?: true
  /** Undefined: the row is saved as it is, its turn unchanged, and the message comes again. */
  on?: Partial<Row> & { step: Row['step'] }
  /** No message leads on. */
  rest?: true
  unsettled?: true
}
type Worker = {
  message: Message
  turn: number
  row: Row
  at: 'look' | 'act' | 'check' | 'send' | 'save'
  plan: Plan
}

export type State = {
  row: Row | undefined
  claims: Claim[]
  vms: Vm[]
  calls: Call[]
  queue: Message[]
  workers: (Worker | undefined)[]
  /** A redrive that has read the row and writes it later. */
  redriver: Row | undefined
  /** A failure that nobody was told of yet; a dead letter was written; the row has come to rest as Failed. */
  owed: boolean
  letter: boolean
  failed: boolean
  /** How often each may still happen; of kicks and redrives, whether they do. */
  left: {
    crashes: number
    lates: number
    losses: number
    fails: number
    others: number
    copies: number
    kicks: number
  }
}

export type Scenario = {
  events: readonly Message[]
  numbers: number
  left?: Partial<State['left']>
  without?: Rule
  /** A process that stood still wakes before what it does could be taken for settled: what lease and settleSeconds promise. */
  sleepersWakeInTime?: boolean
  /** … but for one that is about to give back, take or keep a claim, which may wake at any time. */
  claimsLate?: boolean
}

const CRASHING_AFTER = 2

/**
 * The protocol of turns, leases, claims and unsettled calls, over an abstract state. A step is: take the lease and read the
 * row; look; act; send; save. Anything may happen between two of these, to whoever does them.
 */
export function protocol(scenario: Scenario): Model<State> {
  const { events, numbers, left, without, sleepersWakeInTime = true } = scenario
  const holds = (rule: Rule) => rule !== without
  const all = Array.from({ length: numbers }, (_, number) => number)

  const start: State = {
    row: undefined,
    claims: all.map(() => 'nobody'),
    vms: all.map(() => 0),
    calls: [],
    queue: sorted(events),
    workers: [undefined, undefined],
    redriver: undefined,
    owed: false,
    letter: false,
    failed: false,
    left: { crashes: 0, lates: 0, losses: 0, fails: 0, others: 0, copies: 0, kicks: 0, ...left },
  }

  function* next(state: State): Generator<Happening<State>> {
    for (const id of [0, 1]) {
      const worker = state.workers[id]
      if (!worker) {
        // The two are alike: the second begins only where the first is busy.
        if (id === 1 && !state.workers[0] && state.row?.lease !== 0) continue
        for (const message of state.queue) yield* receive(state, id, message)
        continue
      }
      yield* goOn(state, id, worker)
      if (state.left.crashes > 0) {
        yield { what: `worker ${id} dies`, state: { ...without1(state, id), left: less(state, 'crashes') } }
      }
    }
    yield* byThemselves(state)
  }

  /** A delivery: the lease is taken and the row read, or not. */
  function* receive(state: State, id: number, message: Message): Generator<Happening<State>> {
    const { row } = state
    const turn = 'turn' in message ? message.turn : undefined
    const words = `worker ${id} receives ${inWords(message)}`
    const gone = { ...state, queue: state.queue.filter((one) => one !== message) }
    if (turn !== undefined) {
      if (!row) {
        yield { what: `${words}: there is no row`, state: gone }
        return
      }
      if (turn < 0 && holds('checksTurn')) return
    }
    if (row && row.lease >= 0 && !row.expired) {
      if (turn !== undefined && turn > 0 && !holds('judgesLeaseBeforeTurn'))
        yield { what: `${words}: ahead of the row, so it is acknowledged`, state: gone }
      else if (!holds('countsOnlyTakeOvers') && row.deliveries < CRASHING_AFTER) {
        const counted = { ...row, deliveries: row.deliveries + 1 }
        yield { what: `${words}: the row is held, which is counted`, state: { ...state, row: counted } }
      }
      return
    }
    const takenOver = row !== undefined && row.lease >= 0
    const taken: Row = {
      ...(row ?? blank),
      lease: id,
      expired: false,
      ...(takenOver && holds('notesTakeOvers') && { unsettled: true }),
    }
    if (takenOver && !holds('countsOnlyTakeOvers'))
      taken.deliveries = Math.min(CRASHING_AFTER, taken.deliveries + 1)
    const how = takenOver ? ', takes over the lease that ran out' : ', takes the lease'
    if (turn !== undefined && turn > 0 && holds('checksTurn')) {
      yield {
        what: `${words}${how}: ahead of its sender, who comes back himself`,
        state: { ...gone, row: { ...taken, lease: -1 } },
      }
      return
    }
    const letGo = { ...gone, row: { ...taken, lease: -1 } }
    if (turn !== undefined && taken.step === 'blank') {
      yield { what: `${words}${how}: the row is new`, state: letGo }
      return
    }
    const begun = (plan: Plan, at = first(plan)) => ({
      ...state,
      row: taken,
      workers: state.workers.map((one, index): Worker | undefined =>
        index === id ? { message, turn: 0, row: { ...taken, lease: -1 }, at, plan } : one,
      ),
    })
    if (message.kind === 'Continue') {
      if (isAtRest(taken.step)) yield { what: `${words}${how}: the row is at rest`, state: letGo }
      else if (taken.deliveries >= CRASHING_AFTER && taken.step !== 'report' && !holds('countsOnlyTakeOvers'))
        yield {
          what: `${words}${how}: too many crashes`,
          state: begun({ on: { step: 'report', failedStep: taken.step as Step } }),
          broken: 'a row fails as crashing, and not so often did anybody crash',
        }
      else {
        const stray = turn !== 0 ? 'a message acts in a turn that is not its own' : undefined
        yield { what: `${words}${how}`, state: begun({}, 'look'), ...(stray && { broken: stray }) }
      }
      return
    }
    const on = judge(message, taken)
    if (on) yield { what: `${words}${how}, and on to ${on.step}`, state: begun({ on }) }
    else yield { what: `${words}${how}: nothing to do`, state: letGo }
  }

  /** What an event or a Resume makes of a row. */
  function judge(message: Message, row: Row): Plan['on'] {
    if (message.kind === 'Resume') {
      if (row.step === 'failed' && row.failedStep) return { step: row.failedStep, failedStep: undefined }
      if (row.step === 'report' && row.failedStep && !holds('leavesReportAlone'))
        return { step: row.failedStep, failedStep: undefined }
      return isAtRest(row.step) ? undefined : { step: row.step as Step }
    }
    if (message.kind === 'unask') {
      if (row.step === 'blank') return { step: 'release', wish: 'absent' }
      if (row.step === 'failed' && row.wish === 'absent' && row.failedStep)
        return { step: row.failedStep, failedStep: undefined }
      if (row.wish === 'absent' || row.step === 'deleted') return undefined
      return { step: row.place >= 0 ? 'stop' : 'release', wish: 'absent', failedStep: undefined }
    }
    if (message.kind !== 'ask') return undefined
    const { generation } = message
    if (row.step === 'blank') return { step: 'reserve', wish: 'present', generation }
    if (row.wish === 'absent' || generation <= row.generation) return undefined
    const leaving = row.step === 'stop' || row.step === 'destroy' || row.step === 'release'
    const step = leaving ? (row.step as Step) : row.place >= 0 ? 'stop' : 'reserve'
    return { step, generation, failedStep: undefined }
  }

  function* goOn(state: State, id: number, worker: Worker): Generator<Happening<State>> {
    const name = `worker ${id}`
    const withWorker = (changes: Partial<Worker>, rest: Partial<State> = {}): State => ({
      ...state,
      ...rest,
      workers: (rest.workers ?? state.workers).map((one, index) =>
        index === id && one ? { ...one, ...changes } : one,
      ),
    })
    if (worker.at === 'look') {
      const plan = decide(state, worker.row)
      const looksAtClaims = plan.free !== undefined || plan.kept === true
      const seen = holds('stampsClaims') && looksAtClaims ? { claims: seenBy(state.claims, id) } : {}
      const acts = plan.call ?? plan.claim ?? plan.free ?? plan.bury
      const at = acts === undefined ? first(plan) : 'act'
      yield {
        what: `${name} looks, at ${worker.row.step}: ${planInWords(plan)}`,
        state: withWorker({ plan, at }, seen),
      }
      const mayFail = state.left.fails > 0 && ['reserve', 'clone', 'work'].includes(worker.row.step)
      if (mayFail) {
        const failing: Plan = holds('reportsInATurnOfItsOwn')
          ? { on: { step: 'report', failedStep: worker.row.step as Step } }
          : { bury: true, rest: true, on: { step: 'failed', failedStep: worker.row.step as Step } }
        yield {
          what: `${name} finds that ${worker.row.step} cannot be done, for good`,
          state: withWorker(
            { plan: failing, at: failing.bury ? 'act' : first(failing) },
            { left: less(state, 'fails') },
          ),
        }
      }
      return
    }
    const { plan } = worker
    if (worker.at === 'act') {
      yield* act(state, id, worker, withWorker)
      return
    }
    if (worker.at === 'check') {
      // The number was claimed first, and looked at then: what stands there is another's, or ours of an earlier try.
      const number = plan.claim ?? 0
      const isFree = state.vms[number] === 0 || plan.kept === true
      const next: Plan = isFree ? plan : { free: number }
      const at = isFree ? first(plan) : 'act'
      yield {
        what: `${name} finds number ${number} ${isFree ? 'free' : 'held'}`,
        state: withWorker({ plan: next, at }),
      }
      return
    }
    if (worker.at === 'send') {
      const message: Message = { kind: 'Continue', turn: worker.turn + 1 }
      const sent = { queue: with1(state.queue, message) }
      const at = holds('sendsBeforeSaving') ? 'save' : 'look'
      const words = `${name} sends the message for ${plan.on?.step ?? 'the same step'}`
      if (at === 'save') yield { what: words, state: withWorker({ at }, sent) }
      else yield { what: words, state: without1({ ...state, ...sent }, id) }
      return
    }
    yield* save(state, id, worker, withWorker)
  }

  /** Where a worker is when it has nothing to change. */
  function first({ on, rest }: Plan): Worker['at'] {
    return on && !rest && holds('sendsBeforeSaving') ? 'send' : 'save'
  }

  type Change = (changes: Partial<Worker>, rest?: Partial<State>) => State

  function* act(state: State, id: number, worker: Worker, withWorker: Change): Generator<Happening<State>> {
    const { plan } = worker
    const name = `worker ${id}`
    const at = first(plan)
    if (plan.claim !== undefined) {
      const number = plan.claim
      const holder = state.claims[number]
      const isAsSeen = typeof holder === 'number' && (holder & (1 << id)) > 0
      const isTheirs = plan.kept
        ? holds('stampsClaims') && !isAsSeen
        : holder === 'another' || (isOurs(holder) && holds('claimsAnew'))
      if (isTheirs) {
        const words = `${name} finds number ${number} ${plan.kept ? 'not as it saw it' : 'taken'}`
        yield { what: words, state: withWorker({ at: 'save', plan: {} }) }
        return
      }
      const claims = put(state.claims, number, holds('stampsClaims') ? 1 << id : 0)
      yield { what: `${name} claims number ${number}`, state: withWorker({ at: 'check' }, { claims }) }
      return
    }
    if (plan.free !== undefined) {
      const number = plan.free
      // Anew: somebody took it since this worker looked, so what it saw is not what there is.
      const claim = state.claims[number]
      const isAsSeen = typeof claim === 'number' && (!holds('stampsClaims') || (claim & (1 << id)) > 0)
      const claims = isAsSeen ? put(state.claims, number, 'nobody') : state.claims
      yield {
        what: `${name} gives back number ${number}${isAsSeen ? '' : ', which is not as it saw it'}`,
        state: withWorker({ at }, { claims }),
      }
      return
    }
    if (plan.bury) {
      yield {
        what: `${name} writes the dead letter`,
        state: withWorker({ at }, { letter: true, owed: false }),
      }
      return
    }
    const { call } = plan
    if (!call) return
    const words = `${name} sends: ${callInWords(call)}`
    if (call.kind !== 'clone' && !call.shown) {
      yield { what: words, state, broken: 'a VM is changed that did not show our mark' }
      return
    }
    const landed = land(state, call)
    yield { what: words, ...landed, state: withWorker({ at }, landed.state) }
    if (state.left.lates === 0) return
    const { shown: _, ...onItsWay } = call
    const away = { calls: with1(state.calls, onItsWay), left: less(state, 'lates') }
    const doubt: Plan = { ...plan, ...(holds('heeds596') && { unsettled: true }) }
    if (holds('sendsCallsOnce')) {
      // Transient: the row is saved with its turn unchanged, and the message comes back.
      const { on: __, ...again } = doubt
      yield {
        what: `${words}, and is answered with 596`,
        state: withWorker({ at: 'save', plan: again }, away),
      }
    } else {
      const second = land({ ...state, ...away }, call)
      yield {
        what: `${words}, is cut off, and the client sends it again`,
        ...second,
        state: withWorker({ at }, second.state),
      }
    }
    if (state.left.crashes > 0)
      yield {
        what: `${words}, and dies while it is under way`,
        state: without1(
          { ...state, calls: away.calls, left: { ...away.left, crashes: state.left.crashes - 1 } },
          id,
        ),
      }
  }

  /** Proxmox carries a call out. */
  function land(state: State, { kind, at, generation }: Call): { state: State; broken?: string } {
    const vm = state.vms[at] as Vm
    if (kind === 'clone') {
      if (vm !== 0) return { state }
      const owner = state.claims[at]
      const promise = !isOurs(owner) ? `a VM of ours appears at a number of ${owner}` : undefined
      const vms = put(state.vms, at, generation as Vm)
      return { state: { ...state, vms }, ...(promise === undefined ? {} : { broken: promise }) }
    }
    if (vm === 0) return { state }
    if (vm !== generation)
      return { state, broken: `a call meant for another VM reaches the one at number ${at}` }
    return { state: kind === 'destroy' ? { ...state, vms: put(state.vms, at, 0 as Vm) } : state }
  }

  function* save(state: State, id: number, worker: Worker, _: Change): Generator<Happening<State>> {
    const { plan, row: copy, message } = worker
    const name = `worker ${id}`
    const idle = without1(state, id)
    if (state.row?.lease !== id || worker.turn !== 0) {
      yield { what: `${name} cannot save the row: another has it`, state: idle }
      return
    }
    const unsettled = copy.unsettled || plan.unsettled === true
    if (!plan.on) {
      const row: Row = { ...copy, unsettled, lease: -1, expired: false, deliveries: 0 }
      yield { what: `${name} saves the row as it is, its message comes again`, state: { ...idle, row } }
      return
    }
    const row: Row = { ...copy, unsettled, ...plan.on, lease: -1, expired: false, deliveries: 0 }
    if (row.step === 'deleted') row.unsettled = false
    const moved: State = {
      ...idle,
      row,
      queue: sorted(idle.queue.flatMap((one) => aged(one, holds('checksTurn')))),
      workers: idle.workers.map((one) => one && { ...one, turn: Math.max(-2, one.turn - 1) }),
      ...(row.step === 'report' && { owed: true }),
      ...(row.step === 'failed' && { failed: true }),
    }
    const skipped = copy.step === 'report' && isGoneOver(row.step) && message.kind === 'Resume' && state.owed
    const broken = skipped ? 'a failure is gone over before anybody was told' : undefined
    const kept = { ...moved, queue: moved.queue }
    const acknowledged = { ...moved, queue: moved.queue.filter((one) => !same(one, agedOne(message))) }
    const words = `${name} saves the row: ${row.step}${row.place < 0 ? '' : `, at number ${row.place}`}`
    if (!holds('sendsBeforeSaving') && !plan.rest) {
      // The message is to be sent yet: the worker goes on.
      const waiting: Worker = { ...worker, at: 'send', turn: -1 }
      yield { what: words, state: { ...acknowledged, workers: put(acknowledged.workers, id, waiting) } }
      return
    }
    yield { what: words, state: acknowledged, ...(broken && { broken }) }
    // An event or a redrive may come twice; a Continue that does is stale.
    if (!('turn' in message)) yield { what: `${words}, and dies before it acknowledges`, state: kept }
  }

  /** What a step makes of what it sees. */
  function decide({ vms, claims }: State, row: Row): Plan {
    const { place, unsettled, generation, wish } = row
    const vm: Vm = place < 0 ? 0 : (vms[place] as Vm)
    const counts = (one: Vm) =>
      one === 1 ||
      one === 2 ||
      (one === 'copy' && !holds('checksVmidInMark')) ||
      (one !== 0 && !holds('checksMark'))
    const shown = vm === 1 || vm === 2
    const call = (kind: Call['kind'], of: Vm): Plan['call'] => ({
      kind,
      at: place,
      generation: of === 1 || of === 2 ? of : 0,
      shown,
    })
    const settled = !unsettled
    switch (row.step) {
      case 'reserve': {
        if (unsettled && holds('reservesOnlySettled')) return {}
        const kept = all.find(
          (number) => isOurs(claims[number]) && (vms[number] === 0 || counts(vms[number] as Vm)),
        )
        const on = (at: number) => ({ step: 'clone' as const, place: at, unsettled: false })
        const other = all.find((number) => isOurs(claims[number]) && number !== kept)
        if (other !== undefined) return { free: other }
        if (kept !== undefined)
          return holds('stampsClaims') ? { claim: kept, kept: true, on: on(kept) } : { on: on(kept) }
        const free = all.find((number) => claims[number] === 'nobody' && vms[number] === 0)
        return free === undefined ? {} : { claim: free, on: on(free) }
      }
      case 'clone':
        if (vm === 0)
          return {
            call: { ...call('clone', generation as Vm), shown: true } as Call & { shown: boolean },
            on: { step: 'clone' },
          }
        if (!counts(vm)) return settled ? { on: { step: 'reserve', place: -1 } } : {}
        return { on: { step: vm === generation ? 'work' : 'stop' } }
      case 'work':
        if (!counts(vm)) return settled ? { on: { step: 'clone' } } : {}
        return { call: call('change', vm) as Call & { shown: boolean }, rest: true, on: { step: 'ready' } }
      case 'stop':
        if (unsettled && holds('destroysOnlySettled')) return {}
        if (!counts(vm)) return settled || !holds('releasesOnlySettled') ? { on: { step: 'destroy' } } : {}
        return { call: call('change', vm) as Call & { shown: boolean }, on: { step: 'destroy' } }
      case 'destroy':
        if (!counts(vm)) return settled || !holds('releasesOnlySettled') ? { on: { step: 'release' } } : {}
        if (unsettled && holds('destroysOnlySettled')) return {}
        return { call: call('destroy', vm) as Call & { shown: boolean }, on: { step: 'destroy' } }
      case 'release': {
        if (unsettled && holds('releasesOnlySettled')) return {}
        if (place >= 0) {
          if (counts(vm)) return { on: { step: 'stop' } }
          return holds('letsGoBeforeFreeing')
            ? { on: { step: 'release', place: -1 } }
            : { free: place, on: { step: 'release', place: -1 } }
        }
        const mine = all.find((number) => isOurs(claims[number]))
        if (mine !== undefined && holds('freesClaims')) {
          if (counts(vms[mine] as Vm)) return { on: { step: 'stop', place: mine } }
          return { free: mine, on: { step: 'release' } }
        }
        return wish === 'present'
          ? { on: { step: 'reserve', unsettled: false } }
          : { rest: true, on: { step: 'deleted' } }
      }
      case 'report':
        return { ...(holds('reportsInATurnOfItsOwn') && { bury: true }), rest: true, on: { step: 'failed' } }
      default:
        return {}
    }
  }

  /** What happens without any of our workers: time goes by, Proxmox catches up, others act. */
  function* byThemselves(state: State): Generator<Happening<State>> {
    const { row, left: budget } = state
    for (const call of state.calls) {
      const landed = land({ ...state, calls: state.calls.filter((one) => one !== call) }, call)
      yield { what: `Proxmox carries out, late: ${callInWords(call)}`, ...landed }
    }
    if (row && row.lease >= 0 && !row.expired) {
      // Of who is alive and well, a lease does not run out; of who stands still, it does.
      yield { what: 'the lease runs out', state: { ...state, row: { ...row, expired: true } } }
    }
    const outlived = state.workers.some(
      (worker, id) => worker && row?.lease !== id && !(scenario.claimsLate && isAboutClaims(worker)),
    )
    if (row?.unsettled && state.calls.length === 0 && !(sleepersWakeInTime && outlived))
      yield {
        what: 'what was on its way counts as settled',
        state: { ...state, row: { ...row, unsettled: false } },
      }
    if (budget.losses > 0)
      for (const message of state.queue)
        if (message.kind === 'Continue')
          yield {
            what: `${inWords(message)} is lost`,
            state: {
              ...state,
              queue: state.queue.filter((one) => one !== message),
              left: less(state, 'losses'),
            },
          }
    if (budget.kicks > 0 && row && row.step !== 'blank' && row.step !== 'ready' && row.step !== 'deleted') {
      const resume: Message = { kind: 'Resume', turn: 0 }
      if (!state.queue.some((one) => same(one, resume)))
        yield {
          what:
            row.step === 'failed' ? 'somebody redrives it' : 'gc, or somebody, asks for it to be run again',
          state: { ...state, queue: with1(state.queue, resume) },
        }
      if (row.step === 'failed' && !holds('redrivesByMessage') && !state.redriver)
        yield {
          what: 'a redrive reads the row',
          state: { ...state, redriver: row, left: less(state, 'kicks') },
        }
    }
    if (state.redriver && row) {
      const written: Row = {
        ...state.redriver,
        step: state.redriver.failedStep ?? 'reserve',
        failedStep: undefined,
      }
      const queue = with1(state.queue, { kind: 'Continue', turn: 0 })
      yield {
        what: 'the redrive writes the row as it read it, to be run again',
        state: { ...state, row: { ...written, lease: -1 }, queue, redriver: undefined },
      }
    }
    for (const number of all) {
      if (budget.others > 0 && state.claims[number] === 'nobody' && state.vms[number] === 0) {
        const vms = put(state.vms, number, 'another’s' as Vm)
        yield {
          what: `another proxy claims number ${number}, and its VM stands there`,
          state: { ...state, claims: put(state.claims, number, 'another'), vms, left: less(state, 'others') },
        }
      }
      if (budget.copies > 0 && state.vms[number] === 0)
        for (const vm of ['copy', 'another’s'] as const)
          yield {
            what: `somebody puts a ${vm === 'copy' ? 'copy of our VM' : 'VM of his own'} at number ${number}`,
            state: { ...state, vms: put(state.vms, number, vm as Vm), left: less(state, 'copies') },
          }
    }
  }

  function broken({ row, claims, vms, letter, failed }: State): string | undefined {
    const ours = all.filter((number) => vms[number] === 1 || vms[number] === 2)
    if (ours.length > 1) return 'there are two VMs of one uid'
    const unclaimed = ours.find((number) => !isOurs(claims[number]))
    if (unclaimed !== undefined)
      return `our VM stands at number ${unclaimed}, which is of ${ownerOf(claims[unclaimed])}`
    if (!row) return undefined
    if (row.place >= 0 && !isOurs(claims[row.place]))
      return `the row is at number ${row.place}, which is of ${ownerOf(claims[row.place])}`
    if (row.step === 'deleted') {
      if (ours.length > 0) return 'there is a VM of a proxy that was deleted'
      if (all.some((number) => isOurs(claims[number]))) return 'there is a claim of a proxy that was deleted'
    }
    if (row.step === 'failed' && !letter) return 'it failed, and no dead letter says so'
    if (row.step === 'ready' && letter && !failed) return 'a dead letter tells of a failure that never was'
    return undefined
  }

  const wished = events.reduce(
    (most, event) => (event.kind === 'ask' ? Math.max(most, event.generation) : most),
    0,
  )
  const isUnasked = events.some(({ kind }) => kind === 'unask')

  function met({ row, workers, calls, vms }: State): boolean {
    if (!row || workers.some(Boolean) || calls.length > 0) return false
    if (isUnasked) return row.step === 'deleted'
    if (row.step === 'failed') return true
    return row.step === 'ready' && row.generation === wished && vms[row.place] === wished
  }

  return { start, next, broken, met }
}

const blank: Row = {
  step: 'blank',
  wish: 'present',
  generation: 0,
  place: -1,
  failedStep: undefined,
  lease: -1,
  expired: false,
  unsettled: false,
  deliveries: 0,
}
/** What it does next touches a claim and nothing else; or it is about to save what came of that, which fails. */
const isAboutClaims = ({ plan }: Worker) => plan.free !== undefined || plan.claim !== undefined
const isAtRest = (step: Row['step']) =>
  step === 'ready' || step === 'failed' || step === 'deleted' || step === 'blank'
/** Neither told of, nor about to be. */
const isGoneOver = (step: Row['step']) => step !== 'failed' && step !== 'report'
const isOurs = (claim: Claim | undefined) => typeof claim === 'number'
const ownerOf = (claim: Claim | undefined) => (isOurs(claim) ? 'ours' : claim)
const put = <T>(list: readonly T[], index: number, value: T): T[] =>
  list.map((one, at) => (at === index ? value : one))
/** A worker is idle again, and what it saw is forgotten with it. */
const without1 = (state: State, id: number): State => ({
  ...state,
  workers: put(state.workers, id, undefined),
  claims: state.claims.map((claim) => (typeof claim === 'number' ? claim & ~(1 << id) : claim)),
})
const seenBy = (claims: Claim[], id: number): Claim[] =>
  claims.map((claim) => (typeof claim === 'number' ? claim | (1 << id) : claim))
const less = ({ left }: State, what: keyof State['left']): State['left'] => ({
  ...left,
  [what]: left[what] - 1,
})
const same = (one: object | undefined, other: object | undefined) =>
  JSON.stringify(one) === JSON.stringify(other)
const sorted = <T>(list: readonly T[]): T[] =>
  [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
const with1 = <T extends object>(list: readonly T[], one: T): T[] =>
  list.some((other) => same(other, one)) ? [...list] : sorted([...list, one])

/** A message once the row has gone on by a turn. Of those that are behind, one is like another. */
function agedOne(message: Message): Message {
  return 'turn' in message ? { ...message, turn: Math.max(-1, message.turn - 1) } : message
}
function aged(message: Message, isJudged: boolean): Message[] {
  const older = agedOne(message)
  return 'turn' in older && older.turn < 0 && isJudged ? [] : [older]
}

function inWords(message: Message): string {
  if (message.kind === 'ask') return `a request for generation ${message.generation}`
  if (message.kind === 'unask') return 'a deletion'
  const when = message.turn === 0 ? 'this turn' : message.turn > 0 ? 'the next turn' : 'a turn gone by'
  return `${message.kind} for ${when}`
}
function callInWords({ kind, at }: Call): string {
  if (kind === 'clone') return `clone to number ${at}`
  return kind === 'destroy' ? `destroy the VM at number ${at}` : `change the VM at number ${at}`
}
function planInWords(plan: Plan): string {
  if (plan.call) return `to ${callInWords(plan.call)}`
  if (plan.claim !== undefined) return `to claim number ${plan.claim}`
  if (plan.free !== undefined) return `to give back number ${plan.free}`
  if (plan.bury) return 'to report'
  return plan.on ? `on to ${plan.on.step}` : 'to wait'
}
