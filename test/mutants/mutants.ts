/** A rule of the protocol broken by hand: what is changed, what of the promises goes with it, and who must notice. */
export type Mutant = {
  name: string
  /** The promise that is broken without the rule. */
  breaks: string
  edits: { file: string; find: string; replace: string }[]
  /** The harness's own search that finds it: a plot of the crash points, the random orders, or a test file. */
  caughtBy: { plot: string } | { orders: number } | { file: string; title: string }
}

const settledOnly = (file: string) => ({
  file,
  find: "  if (!row.settled) return wait('a call that was not answered may still run', 10)\n",
  replace: '',
})

export const mutants: Mutant[] = [
  {
    name: 'remove the turn check',
    breaks: 'a message acts in its own turn only',
    edits: [
      { file: 'lib/ledger.ts', find: '[rowExists, turnNotBehind]', replace: '[rowExists]' },
      {
        file: 'lib/ledger.ts',
        find: "...(byTurn ? { ':turn': demand.turn } : {}),",
        replace: '',
      },
      {
        file: 'lib/worker.ts',
        find: "      if (message.turn !== row.turn) return letGo(message.turn < row.turn ? 'stale' : 'ahead of its sender')\n",
        replace: '',
      },
    ],
    caughtBy: { plot: 'create' },
  },
  {
    name: 'judge the turn before the lease',
    breaks: '4: the chain of messages is lost, and the row stalls',
    edits: [
      {
        file: 'lib/worker.ts',
        find: "    if (taken.kind === 'held') {\n",
        replace:
          "    if (taken.kind === 'held' && isOurs(message) && message.turn > taken.turn)\n" +
          "      return { uid, outcome: 'acknowledge', reason: 'ahead of the row', verdict: acknowledge }\n" +
          "    if (taken.kind === 'held') {\n",
      },
    ],
    caughtBy: { orders: 300 },
  },
  {
    name: 'save before send',
    breaks: '4: a crash between the two leaves no message',
    edits: [
      {
        file: 'lib/turn.ts',
        find:
          '    await queues.send(\n' +
          '      sideOf(row.step, row.failedStep),\n' +
          "      { type: 'Continue', uid: row.uid, turn },\n" +
          '      { delaySeconds },\n' +
          '    )\n' +
          '    await ledger.save({ ...row, turn, dueAt: now() + delaySeconds * 1000 }, token)\n',
        replace:
          '    await ledger.save({ ...row, turn, dueAt: now() + delaySeconds * 1000 }, token)\n' +
          "    await queues.send(sideOf(row.step, row.failedStep), { type: 'Continue', uid: row.uid, turn }, { delaySeconds })\n",
      },
    ],
    caughtBy: { plot: 'create' },
  },
  {
    name: 'write the dead letter in the failing step',
    breaks: '5: a letter tells of a failure that never was',
    edits: [
      {
        file: 'lib/turn.ts',
        find: "      await move(patched(row, { failedStep: step, problem }), 'report', 0, token)\n",
        replace:
          "      await queues.bury('create', JSON.stringify({ type: 'Continue', uid: row.uid, turn: row.turn }), {\n" +
          '        code,\n        uid: row.uid,\n        turn: row.turn,\n        failedAt: new Date(now()).toISOString(),\n        problem: { reason },\n      })\n' +
          "      await move(patched(row, { failedStep: step, problem }), 'report', 0, token)\n",
      },
    ],
    caughtBy: { plot: 'refused' },
  },
  {
    name: 'count a bounced delivery',
    breaks: '4: who only waited fails as if it had crashed',
    edits: [
      {
        file: 'lib/turn.ts',
        find: '    if (taken.deliveries >= CRASHING_AFTER) {\n',
        replace: '    if (delivery.receiveCount > CRASHING_AFTER) {\n',
      },
    ],
    caughtBy: { orders: 300 },
  },
  {
    name: 'forget a take-over',
    breaks: '2 and 6: a call of the dead is carried out where nobody expects it',
    edits: [{ file: 'lib/ledger.ts', find: "':unsettled': now() + settleMs", replace: "':unsettled': 0" }],
    caughtBy: { plot: 'delete' },
  },
  {
    name: 'free a VMID before the row lets go',
    breaks: '6: the row is at a number that is another’s',
    edits: [
      {
        file: 'functions/delete/release.ts',
        find: "    return wait('lets go of its place', 0,",
        replace:
          '    for (const claim of await claims.claimsOf(row.uid)) if (numberOf(claim)) await claims.free(claim)\n' +
          "    return wait('lets go of its place', 0,",
      },
    ],
    caughtBy: { plot: 'delete' },
  },
  {
    name: 'destroy while unsettled',
    breaks: 'nothing is stopped or destroyed while another call to that VM may still be carried out',
    edits: [settledOnly('functions/delete/stop.ts'), settledOnly('functions/delete/destroy.ts')],
    caughtBy: { plot: 'delete' },
  },
  {
    name: 'redrive a row in report',
    breaks: '5: a failure is gone over before anybody was told',
    edits: [
      {
        file: 'lib/ruling.ts',
        find: "  if (row.phase === 'Failed' && row.failedStep) {",
        replace: '  if (row.failedStep) {',
      },
    ],
    caughtBy: { plot: 'refused' },
  },
  {
    name: 'drop the mark check',
    breaks: '3: another’s VM is changed',
    edits: [
      {
        file: 'lib/mark.ts',
        find: '    const ours = mark.deployment === deployment && mark.uid === markUid(row) && mark.vmid === row.place?.vmid\n',
        replace: '    const ours = true\n',
      },
    ],
    caughtBy: { plot: 'copied' },
  },
  {
    name: 'drop the VMID from the mark',
    breaks: '3: a copy that somebody made of our VM is changed',
    edits: [{ file: 'lib/mark.ts', find: ' && mark.vmid === row.place?.vmid\n', replace: '\n' }],
    caughtBy: { plot: 'copied' },
  },
  {
    name: 'forget to release a claim',
    breaks: '2: a claim of a deleted proxy remains',
    edits: [
      {
        file: 'functions/delete/release.ts',
        find: '    if (!(await claims.free(claim))) return wait(CHANGED, 1)\n',
        replace: '',
      },
    ],
    caughtBy: { plot: 'delete' },
  },
  {
    name: 'swap seed and destroy',
    breaks: '2: a seed outlives its VM, by which it is found',
    edits: [
      {
        file: 'functions/delete/stop.ts',
        find: "return next('unseed', { cloned: true })",
        replace: "return next('destroy', { cloned: true })",
      },
      {
        file: 'functions/delete/stop.ts',
        find: "return next('unseed', { cloned: true, ...",
        replace: "return next('destroy', { cloned: true, ...",
      },
      {
        file: 'functions/delete/destroy.ts',
        find: "  const [volume, ...others] = await vms.volumesOf({ node, storage: place.storage, vmid: place.vmid })\n  if (!volume) return next('release')",
        replace:
          "  const [volume, ...others] = await vms.volumesOf({ node, storage: place.storage, vmid: place.vmid })\n  if (!volume) return next(row.seed === undefined ? 'release' : 'unseed')",
      },
      {
        file: 'functions/delete/unseed.ts',
        find: "  if (!cluster.isoStorageShared && nodesToSweep(row, cluster, []).every(isSwept))\n    return next('destroy', clean)",
        replace:
          "  if (!cluster.isoStorageShared && nodesToSweep(row, cluster, []).every(isSwept))\n    return next('release', clean)",
      },
    ],
    caughtBy: { plot: 'delete' },
  },
  {
    name: 'treat 596 as not run',
    breaks: 'a call that may have been carried out is sent again',
    edits: [
      {
        file: 'lib/proxmox/answer.ts',
        find: "  if (status === 401 || status === 595) return 'no'",
        replace: "  if (status === 401 || status === 595 || status === 596) return 'no'",
      },
    ],
    caughtBy: { plot: 'delete' },
  },
  {
    name: 'release before settled',
    breaks: '2: what a sleeper claims is left when its proxy is deleted',
    edits: [
      settledOnly('functions/delete/release.ts'),
      {
        file: 'lib/sighting.ts',
        find: "  if (look.kind === 'absent') return row.settled ? { kind: 'gone', heldByAnother: false } : settling()\n",
        replace: "  if (look.kind === 'absent') return { kind: 'gone', heldByAnother: false }\n",
      },
    ],
    caughtBy: { plot: 'delete-at-reserve' },
  },
  {
    name: 'let redrive write the row',
    breaks: 'a row is written as it was read, whatever it has become since',
    edits: [
      {
        file: 'lib/worker.ts',
        find: '    const taken = await take(uid, message)\n',
        replace:
          '    const read = isResume(message) ? await ledger.read(uid) : undefined\n' +
          "    const again = await ledger.take(uid, { kind: 'event' })\n" +
          "    if (again.kind === 'taken' && read?.phase === 'Failed' && read.failedStep) {\n" +
          '      await goOn(patched(read, { step: read.failedStep, failedStep: undefined }), read.turn + 1, again.token)\n' +
          "      return { uid, outcome: 'next', reason: 'redriven', verdict: acknowledge }\n" +
          '    }\n' +
          "    if (again.kind === 'taken') await ledger.release(uid, again.token)\n" +
          '    const taken = await take(uid, message)\n',
      },
    ],
    caughtBy: { plot: 'refused' },
  },
  {
    name: 'retry a POST',
    breaks: 'a call that may have been carried out is sent again',
    edits: [
      {
        file: 'lib/proxmox/transport.ts',
        find: '    let mayRepeat = !isChange(call)\n',
        replace: '    let mayRepeat = true\n',
      },
      {
        file: 'lib/proxmox/transport.ts',
        find: "        if (isChange(call) && error.sent !== 'no') break\n",
        replace: '',
      },
    ],
    caughtBy: { plot: 'create' },
  },
  {
    name: 'drop the stamp',
    breaks: '6: a sleeper gives back the number that its successor has claimed anew',
    edits: [
      {
        file: 'lib/claims.ts',
        find: "[stampedSo, { ':stamp': stamp }]\n",
        replace: "[ours, { ':owner': owner }, void stamp]\n",
      },
    ],
    caughtBy: { file: 'test/faults/sleepers.test.ts', title: 'goes on to touch a claim' },
  },
  {
    name: 'act on an orphan that comes twice',
    breaks: '3: what a message of yesterday was about is another VM today',
    edits: [
      {
        file: 'functions/delete/stop.ts',
        find: "    if (!(await isLeftTo(row, row.place, claims))) return next('release', { place: undefined })\n",
        replace: '',
      },
    ],
    caughtBy: { plot: 'orphaned-0' },
  },
  {
    name: 'do not wait for what an overtaken step has begun',
    breaks: '2: a seed that was being uploaded appears after its proxy is deleted',
    edits: [
      {
        file: 'functions/delete/stop.ts',
        find: "  if (row.task && row.task.step !== 'stop') return overtaken(row.task, vms)\n",
        replace: '',
      },
    ],
    caughtBy: { plot: 'delete-at-upload' },
  },
  {
    name: 'reserve while unsettled',
    breaks: '6: a sleeper gives back the number that its successor has built on',
    edits: [
      {
        file: 'functions/create/reserve.ts',
        find: "  if (!row.settled) return wait('an earlier try may still be at it', 10, { capSeconds: SETTLING_CAP_SECONDS })\n",
        replace: '',
      },
    ],
    caughtBy: { plot: 'delete-at-reserve' },
  },
]
