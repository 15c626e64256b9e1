/** What can happen next, and what must not have happened. */
export type Model<S> = {
  start: S
  /** Every way on from a state: what happens, in words, and what comes of it. */
  next(state: S): Iterable<Happening<S>>
  /** A promise that a state breaks; undefined when it breaks none. */
  broken(state: S): string | undefined
  /** What everybody wished for has come about. */
  met(state: S): boolean
}

export type Happening<S> = {
  what: string
  state: S /** … and breaks a promise by happening. */
  broken?: string
}

export type Found = {
  states: number
  steps: number
  /** The shortest way to a broken promise, as a story; absent when every state within the bounds is well. */
  violation?: { promise: string; story: string[] }
}

/**
 * Goes through every state that can be reached, breadth first, so that the first broken promise has the shortest story.
 * Then backwards from where the wish is met: a state from which that cannot be reached any more breaks a promise as well.
 */
export function explore<S>(model: Model<S>, atMost = 2_000_000): Found {
  const numbers = new Map<string, number>()
  const states: S[] = []
  const cameFrom: { parent: number; what: string }[] = []
  const predecessors: number[][] = []
  let steps = 0

  function note(state: S, parent: number, what: string): number {
    const key = JSON.stringify(state)
    const known = numbers.get(key)
    if (known !== undefined) return known
    if (states.length >= atMost) throw new Error(`more than ${atMost} states: the bounds are too wide`)
    numbers.set(key, states.length)
    cameFrom.push({ parent, what })
    predecessors.push([])
    return states.push(state) - 1
  }
  function storyOf(index: number): string[] {
    const lines: string[] = []
    for (let at = index; at > 0; at = cameFrom[at]?.parent ?? 0) lines.unshift(cameFrom[at]?.what ?? '')
    return lines
  }
  const found = (promise: string, story: string[]): Found => ({
    states: states.length,
    steps,
    violation: { promise, story },
  })

  note(model.start, 0, '')
  for (let index = 0; index < states.length; index++) {
    const state = states[index] as S
    for (const { what, state: after, broken } of model.next(state)) {
      steps += 1
      if (broken !== undefined) return found(broken, [...storyOf(index), what])
      const before = states.length
      const number = note(after, index, what)
      predecessors[number]?.push(index)
      const promise = number === before ? model.broken(after) : undefined
      if (promise !== undefined) return found(promise, storyOf(number))
    }
  }

  const hopeful = new Uint8Array(states.length)
  const reached = states.flatMap((state, index) => (model.met(state) ? [index] : []))
  for (const index of reached) hopeful[index] = 1
  for (let index = reached.pop(); index !== undefined; index = reached.pop()) {
    for (const before of predecessors[index] ?? []) {
      if (hopeful[before]) continue
      hopeful[before] = 1
      reached.push(before)
    }
  }
  const lost = hopeful.indexOf(0)
  if (lost >= 0) return found('from here the wish can never be met', storyOf(lost))
  return { states: states.length, steps }
}
