/** Recorded exchanges that are not compared here, and why. Everything else is. */

export const reasons = {
  http: 'about HTTP itself; replayed in http-*.test.ts',
  swept: 'PVE learns only now and then that a task has ended, and lists it as running until then',
  cut: 'recorded in a form too short to compare',
  race: 'a race that each run decides anew',
  brokenPipe: 'by chance: pveproxy wrote to a worker connection that had just ended',
  behindBrokenPipe:
    'stood in a queue from which broken pipes had taken others by chance, or lists what became of it',
  noWorker: 'by chance: pvedaemon could not start a worker, and what followed from it',
  notShown: 'depends on calls that the recording leaves out',
  artefact: 'an artefact of the recording machine: no ssh between its nodes, its QEMU, its scripts',
  membership: 'corosync takes some seconds to change the membership',
  leftovers: 'shows VMs left over from other scenarios',
  moment: 'caught in the middle of a change that lasts milliseconds',
  gaveUp: 'the recording gave up waiting',
  notSimulated: 'an endpoint that the life of a proxy VM does not touch',
} as const

export type Reason = keyof typeof reasons

/** By version and scenario: the index of each exchange in its file. */
export const excluded: Record<string, Partial<Record<Reason, number[]>>> = {
  '8/02-auth-and-routing': { http: [64] },
  '8/04b-clone-in-progress-parallel': { race: [30] },
  '8/05-clone-errors': { race: [77, 78, 83, 84] },
  '8/06-clone-killed': { artefact: [51] },
  '8/07-tasks': { cut: [58] },
  '8/08-iso-upload': { http: [96, 97, 98, 99, 100, 101, 102, 105] },
  '8/09-iso-delete': { race: [94] },
  '8/10-config': { notSimulated: [139] },
  '8/11-resize-start-stop-destroy': { race: [209, 211, 212, 214] },
  '8/13-permissions': { notShown: [95, 133, 151, 152, 154, 171, 172, 174, 187, 188, 190] },
  '8/14-parallel': { brokenPipe: [91], moment: [154] },
  '8/15-daemon-killed': { swept: [14, 15, 16, 45, 46, 47], moment: [19], gaveUp: [75] },
  '8/15b-host-reset': { swept: [7, 8, 12] },
  '8/16-two-nodes': { artefact: [21, 49, 56, 85, 110], membership: [72, 98] },
  '8/22-pvedaemon-saturated': { brokenPipe: [8], behindBrokenPipe: [13, 15, 16, 18, 33] },
  '8/22b-596-but-done': {
    brokenPipe: [7, 9, 11, 12, 13, 19, 21],
    behindBrokenPipe: [14, 17, 20, 22, 25, 26, 42],
  },
  '8/24-pvestatd-dead': { leftovers: [5] },
  '9/02-auth-and-routing': { http: [64] },
  '9/04b-clone-in-progress-parallel': { brokenPipe: [44] },
  '9/05-clone-errors': { race: [76, 82] },
  '9/06-clone-killed': { artefact: [51] },
  '9/07-tasks': { artefact: [49], cut: [58] },
  '9/08-iso-upload': { http: [96, 97, 98, 99, 100, 101, 102, 105] },
  '9/10-config': { notSimulated: [139] },
  '9/11-resize-start-stop-destroy': { artefact: [62, 63, 64], race: [207, 208, 209, 210] },
  '9/13-permissions': { notShown: [133, 151, 152, 171, 172, 187, 188] },
  '9/14-parallel': { brokenPipe: [88, 89, 90, 91], noWorker: [119, 126], moment: [154] },
  '9/15-daemon-killed': { swept: [14, 15, 16, 45, 46, 47] },
  '9/15b-host-reset': { swept: [6, 7, 8] },
  '9/22-pvedaemon-saturated': { leftovers: [16], swept: [33] },
  '9/22b-596-but-done': { noWorker: [22], swept: [42] },
}

/** Scenarios that show HTTP itself, replayed in tests of their own. */
export const elsewhere: Record<string, string> = {
  '19-http-connection': 'http-connection.test.ts',
  '28-node-fetch': 'http-node-fetch.test.ts',
}

export function reasonFor(version: 8 | 9, scenario: string, index: number): Reason | undefined {
  const entries = Object.entries(excluded[`${version}/${scenario}`] ?? {})
  // The keys of the table are reasons by its type.
  return entries.find(([, indexes]) => indexes.includes(index))?.[0] as Reason | undefined
}
