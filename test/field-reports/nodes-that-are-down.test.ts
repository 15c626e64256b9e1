import { afterEach, expect, it } from 'vitest'
import { deadLetterCodes } from '../functions/adversity.ts'
import { type Lab, openLab } from '../lab/lab.ts'

let lab: Lab
afterEach(() => lab?.close())

// Report: kasmtech/workspaces-issues#858
it.each(['down', 'unreachable'] as const)(
  'a node that is %s keeps no request waiting: the others take it',
  async (state) => {
    lab = await openLab()
    lab.sim.setNode('pve1', state)
    // The others notice a little later.
    await lab.clock.advance(60_000)
    const uids = Array.from({ length: 9 }, (_, index) => `proxy-${index}`)
    for (const uid of uids) lab.request(uid)
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'), 10 * 60_000)
    expect(new Set(uids.map((uid) => lab.row(uid)?.place?.node))).toEqual(new Set(['pve2', 'pve3']))
    expect(deadLetterCodes(lab)).toEqual([])
  },
)
