import type { FailureCode } from './failure.ts'
import { grantCommand, type Lack } from './grant.ts'
import { HOLD_TAG } from './names.ts'

/** What a failure tells of itself; lib/proxmox's ProxmoxError and our own Failure are such. */
export type Trouble = {
  code: FailureCode
  message: string
  /** Of the HTTP answer, when there was one. */
  status?: number
  call?: string
  node?: string
  vmid?: number
  privilege?: string
  path?: string
  lock?: string
  volume?: string
  detail?: Readonly<Record<string, string>>
  tokenId?: string
}

/** Names for a hint's commands; what is not known stands as a placeholder in angle brackets. */
export type Clues = {
  uid: string
  vmid: number | string
  node: string
  upid: string
  template: number | string
  /** Of all images of the cluster. */
  templates: readonly number[]
  cluster: string
  zone: string
  image: string
  storage: string
  isoStorage: string
  pool: string
  bridge: string
  parameter: string
  /** Where passwords are kept on one machine; on AWS they are parameters of Systems Manager. */
  parameterFile?: string
  tokenSource: string
  endpoint: string
  port: number | string
  seed: string
  volume: string
  /** What a VM of ours is called, its card's MAC, its tags, and the line that its notes hold. */
  name: string
  mac: string
  tags: string
  mark: string
  /** Options of `qm set` that let go of a VM that was to be kept. */
  release: string
  trouble: Partial<Trouble>
}

/** For the page that lists all symptoms, and for what a row does not know. */
export const placeholders: Clues = {
  uid: '<uid>',
  vmid: '<vmid>',
  node: '<node>',
  upid: '<upid>',
  template: '<template>',
  templates: [],
  cluster: '<cluster>',
  zone: '<zone>',
  image: '<image>',
  storage: '<storage>',
  isoStorage: '<isoStorage>',
  pool: '<pool>',
  bridge: '<bridge>',
  parameter: '<passwordParameter>',
  tokenSource: '<where the token is kept>',
  endpoint: '<endpoint>',
  port: '<port>',
  seed: '<seed>',
  volume: '<volume>',
  name: '<name>',
  mac: '<mac>',
  tags: '<tags>',
  mark: '<mark>',
  release: '<release>',
  trouble: { privilege: '<privilege>', path: '<path>' },
}

/** What an operator sees, and what to type about it. Commands stand between backticks; before one that must be typed on a certain node stands `on node`. */
export type Symptom = {
  symptom: string
  hint(clues: Clues): string
  /** Of those that are our own and not Proxmox's: it may go away by itself. */
  passing?: boolean
}

const again = ({ uid }: Pick<Clues, 'uid'>) => `\`egress dlq redrive ${uid}\``
const redrive = (clues: Pick<Clues, 'uid'>) => `then ${again(clues)}`
const taskLog = ({ node, vmid }: Clues) => `on node ${node} \`pvenode task list --vmid ${vmid}\``
const console = ({ node, vmid }: Clues) => `on node ${node} \`qm terminal ${vmid}\` (Ctrl-O leaves it)`
/** In passing for a while, and then it has failed like anything else. */
const ofItself = (clues: Clues, text: string) =>
  `it is tried again of itself; if it lasts, ${text}. Once it was given up, ${again(clues)}`

/** Every code there is, by what it looks like. */
export const symptoms: Readonly<Record<FailureCode, Symptom>> = {
  InvalidEvent: {
    symptom: 'a message on a queue cannot be read, or asks for what this installation does not have',
    hint: () =>
      'correct the named fields: `egress dlq show <message id> --raw`, save the mended body, ' +
      '`egress dlq redrive <message id> --body <file>`; or tell its publisher and `egress dlq drop <message id> --reason <why>`. ' +
      'A zone or image that is missing goes into the configuration, then `egress dlq redrive <message id>`',
  },
  GenerationReused: {
    symptom: 'a request names a generation that was asked for before with another name or spec',
    hint: ({ uid }) =>
      `\`egress get ${uid}\` shows the generation that is there: its publisher publishes a higher one; then \`egress dlq drop ${uid} --reason <why>\``,
  },
  AddressTaken: {
    symptom: 'two proxies have one address: the VM was given one that is told of as another proxy’s',
    hint: (clues) =>
      `its reason names the other: \`egress explain <the other>\` shows where its VM is now. Do both VMs have one machine-id ` +
      `(${console(clues)}, \`cat /etc/machine-id\`), since the template was started before it became one, or do two DHCP servers answer on ${clues.bridge}? ` +
      `Mend that and publish the proxy with a higher generation; where the other VM has another address by now, ${again(clues)}`,
  },
  RowUnreadable: {
    symptom:
      'the row of a proxy is not as this version writes one: a newer version wrote it, or somebody changed it by hand',
    hint: ({ uid }) =>
      `deploy the version that wrote it again; or look at the item \`${uid}\` of the table of proxies ` +
      `(\`aws dynamodb get-item --table-name <table> --key '{"uid":{"S":"${uid}"}}'\`) and put right the fields that are named, ${redrive({ uid })}`,
  },
  AgentNeverUp: {
    symptom: 'the VM runs, and its guest agent does not tell an address',
    hint: (clues) =>
      `${console(clues)}: did cloud-init find its seed, is qemu-guest-agent installed and running, did DHCP answer on ${clues.bridge}? ` +
      `/var/log/cloud-init-output.log in it, and its console while it boots, tell. ` +
      `\`qm agent ${clues.vmid} ping\` asks it. Mend the template or the network, \`qm stop ${clues.vmid} && qm start ${clues.vmid}\`, ${redrive(clues)}`,
  },
  Crashing: {
    symptom: 'ten times in a row whoever worked on this row or message died before the end',
    hint: (clues) =>
      `look for invocations that ran out of time or memory: \`aws logs filter-log-events --log-group-name /aws/lambda/<function> --filter-pattern '"${clues.uid}"'\`, ` +
      `on one machine \`grep '"${clues.uid}"' .egress/up.log\`; raise timings.functionTimeoutSeconds or the function's memory, ${redrive(clues)}`,
  },
  MarkLost: {
    symptom: 'a VM has our name or our seed, but its notes do not prove it ours, so it is left alone',
    hint: (clues) =>
      `${markAgain(clues)}, ${redrive(clues)}. If it is another’s, \`qm set ${clues.vmid} --name <another name> --ide2 none,media=cdrom\` ` +
      `takes from it what looks like ours: it is left alone and done without after ${again(clues)}`,
  },
  Misconfigured: {
    symptom: 'a cluster or zone that proxies still live in is no longer in the configuration',
    hint: (clues) =>
      `put it back into the configuration for as long as proxies live there, and deploy (or restart \`egress up\`), ${redrive(clues)}`,
  },
  NoNode: {
    passing: true,
    symptom: 'no node of the zone with a template of the image is online',
    hint: (clues) =>
      `on any node \`pvecm nodes\`; bring one back, or add a node to zones.${clues.zone}.nodes and clusters.${clues.cluster}.images.${clues.image}, ${redrive(clues)}`,
  },
  PasswordMissing: {
    symptom: 'the password that a proxy is to ask for is not stored',
    hint: (clues) => {
      const { parameter, parameterFile } = clues
      const store =
        parameterFile === undefined
          ? `\`aws ssm put-parameter --type SecureString --name ${parameter} --value file://<file>\``
          : `put the line \`${parameter}: <password>\` into ${parameterFile}`
      return `store it: ${store}, ${redrive(clues)}`
    },
  },
  ProbeRefused: {
    symptom: 'the proxy answers and turns us away (401, 403, 407)',
    hint: (clues) =>
      `is the address that the functions come from in verify.probeFrom, and is ${clues.parameter} still what the proxy was made with? ` +
      `A proxy keeps what it was made with: put them right, then publish it with a higher generation; or put back what it was made with, ${redrive(clues)}`,
  },
  ProxyNeverAnswered: {
    symptom: 'the VM has an address, and nothing answers as a proxy there',
    hint: (clues) =>
      `${console(clues)}: does /var/log/cloud-init-output.log in it show that tinyproxy was installed and started, and \`journalctl -u tinyproxy\` that it got its port? ` +
      `From where the functions run, is port ${clues.port} of the VM reachable? Mend that, ` +
      `\`qm stop ${clues.vmid} && qm start ${clues.vmid}\` tries again what was not installed, ${redrive(clues)}`,
  },
  RangeExhausted: {
    passing: true,
    symptom: 'every VMID of the range is taken',
    hint: (clues) =>
      `widen vmids of cluster ${clues.cluster} (or of zone ${clues.zone}) in the configuration, or delete proxies (\`egress list --zone ${clues.zone}\`), ${redrive(clues)}`,
  },
  RetriesExhausted: {
    symptom:
      'for as long as it was tried again (a day, or less for some causes) nothing but passing errors came',
    hint: (clues) => `its reason names the last cause: look that up here, mend it, ${redrive(clues)}`,
  },
  SeedRefused: {
    symptom: 'the request has something that no seed can hold',
    hint: () => 'its publisher corrects the named field and publishes the proxy with a higher generation',
  },
  StepTimedOut: {
    symptom: 'a step waited longer than it may, although Proxmox answered',
    hint: (clues) =>
      // The reason names what was waited for. Source: lib/sighting.ts.
      / is locked \(/.test(clues.trouble.message ?? '')
        ? symptoms.VmLocked.hint(clues)
        : `its reason says what for; ${taskLog(clues)} shows the tasks of the VM. Mend what it waited for, ${redrive(clues)}`,
  },
  StuckLock: {
    symptom: 'a half made or half destroyed VM is locked, and no task is at work on it',
    hint: (clues) =>
      `no API token can remove it: on node ${clues.node} \`qm config ${clues.vmid}\` to look, then ` +
      `\`qm unlock ${clues.vmid} && qm destroy ${clues.vmid} --purge --destroy-unreferenced-disks 1\`, ${redrive(clues)}`,
  },
  UserDataLost: {
    symptom: 'the extra cloud-config of the request is no longer stored',
    hint: () => 'its publisher publishes the proxy with a higher generation',
  },
  VmBroken: {
    symptom: 'the VM runs and does not work: io-error, internal-error or guest-panicked',
    hint: (clues) =>
      `${console(clues)}, and \`pvesm status --storage ${clues.storage}\`: a full or failing storage does this. Mend it, \`qm stop ${clues.vmid}\`, ${redrive(clues)}`,
  },
  VmGone: {
    symptom: 'the VM was gone each time after it was made',
    hint: (clues) =>
      `who deletes it? On node ${clues.node} \`pvenode task list --vmid ${clues.vmid}\` names the user of each task. Stop that, ${redrive(clues)}`,
  },

  Aborted: {
    symptom: 'an invocation ended before Proxmox answered',
    hint: (clues) => ofItself(clues, 'raise timings.functionTimeoutSeconds'),
  },
  AgentError: {
    symptom: 'the guest agent answers with an error',
    hint: (clues) =>
      `on node ${clues.node} \`qm agent ${clues.vmid} ping\`; look at qemu-guest-agent in the VM: ${console(clues)}. Mend it, ${redrive(clues)}`,
  },
  AgentOff: {
    symptom: 'somebody switched the guest agent of the VM off',
    hint: (clues) =>
      `on node ${clues.node} \`qm set ${clues.vmid} --agent enabled=1 && qm stop ${clues.vmid} && qm start ${clues.vmid}\`, ${redrive(clues)}`,
  },
  AgentSilent: {
    symptom: 'the guest agent does not answer',
    hint: (clues) =>
      `on node ${clues.node} \`qm agent ${clues.vmid} ping\`; is qemu-guest-agent running in the VM? ${console(clues)}. Mend it, ${redrive(clues)}`,
  },
  AlreadyExists: {
    symptom: 'something else is at the VMID, or being made there',
    hint: (clues) =>
      ofItself(
        clues,
        `on any node \`pvesh get /cluster/resources --type vm\` shows what is at ${clues.vmid}`,
      ),
  },
  AlreadyRunning: {
    symptom: 'the VM runs already',
    hint: (clues) => ofItself(clues, `${taskLog(clues)} shows who starts it`),
  },
  CommandFailed: {
    symptom: 'a program on the node failed: QEMU, qemu-img, cp',
    hint: (clues) =>
      `on node ${clues.node} \`pvenode task log ${clues.upid}\` has its words; mend what they name, ${redrive(clues)}`,
  },
  DigestMismatch: {
    symptom: 'somebody else changes the VM at the same time',
    hint: (clues) => ofItself(clues, `${taskLog(clues)} shows who`),
  },
  Forbidden: { symptom: 'our token lacks a privilege', hint: forbidden },
  InUse: {
    symptom: 'a linked clone of our VM still needs its disk',
    hint: (clues) =>
      `on node ${clues.node} \`grep -l "base-${clues.vmid}-" /etc/pve/nodes/*/qemu-server/*.conf\` names the clones; ` +
      `destroy them, or give each a disk of its own (\`qm disk move <clone> <disk> ${clues.storage} --delete 1\`), ${redrive(clues)}`,
  },
  Interrupted: {
    symptom: 'somebody stopped the task',
    hint: (clues) => ofItself(clues, `${taskLog(clues)} shows it`),
  },
  Locked: {
    symptom: 'a lock of the node, the cluster or a storage is not to be had',
    hint: (clues) =>
      ofItself(
        clues,
        `on node ${clues.node} \`pvenode task list --source active\` shows what holds it; lower limits.clonesPerStorage if it is our own clones`,
      ),
  },
  NoQuorum: {
    symptom: 'the part of the cluster we reach has no majority',
    hint: (clues) => ofItself(clues, 'on any node `pvecm status`; bring nodes back'),
  },
  NoSpace: {
    symptom: 'a storage is full',
    hint: (clues) =>
      `on node ${clues.node} \`pvesm status --storage ${clues.storage}\` and \`pvesm status --storage ${clues.isoStorage}\`, ` +
      `and \`df -h /var/tmp\` through which uploads pass; make room, or name another storage in clusters.${clues.cluster}, ${redrive(clues)}`,
  },
  NoSuchTask: {
    symptom: 'the node does not know a task of ours any more',
    hint: (clues) => ofItself(clues, `${taskLog(clues)} shows what ran`),
  },
  NoWorker: {
    symptom: 'the node could not start a worker process',
    hint: (clues) => ofItself(clues, `on node ${clues.node} \`free -m\` and \`systemctl status pvedaemon\``),
  },
  NodeUnknown: {
    symptom: 'one node does not know the address of another',
    hint: (clues) =>
      ofItself(
        clues,
        `on any node \`getent hosts ${clues.node}\`; put it into /etc/hosts there, and \`pvecm updatecerts\``,
      ),
  },
  NotRunning: {
    symptom: 'the VM does not run where it should',
    hint: (clues) => ofItself(clues, `${taskLog(clues)} shows who stops it`),
  },
  Protected: {
    symptom: 'the VM is protected against deletion, or tagged egress-hold',
    hint: (clues) =>
      `somebody wanted it kept, by protection or by the tag \`${HOLD_TAG}\`, and takes that off when done with it; if it may go: on node ${clues.node} ${releasing(clues)}, ${redrive(clues)}`,
  },
  Rejected: { symptom: 'Proxmox refuses what is asked of it', hint: rejected },
  Running: {
    symptom: 'the VM was started again while it was being destroyed',
    hint: (clues) => ofItself(clues, `${taskLog(clues)} shows who starts it`),
  },
  StorageOffline: {
    symptom: 'a storage is not mounted, not online, disabled or read-only',
    hint: (clues) =>
      `on node ${clues.node} \`pvesm status\`; mount it, or \`pvesm set ${storageNamed(clues)} --disable 0\`, ${redrive(clues)}`,
  },
  TaskLost: {
    symptom: 'the worker of a task was killed',
    hint: (clues) =>
      ofItself(clues, `on node ${clues.node} \`journalctl --unit pvedaemon --since -1h\` tells of it`),
  },
  TemplateProblem: {
    symptom: 'a template is missing, or a proxy cannot be made from it',
    hint: (clues) =>
      `is clusters.${clues.cluster}.images.${clues.image}.${clues.node} the right number? On node ${clues.node} \`qm config ${clues.template}\`: it needs a line template: 1, ` +
      `a disk to boot from, nothing but an empty or cloud-init drive on ide2, and a storage that can make linked clones (else \`clone: full\` in clusters.${clues.cluster}). Mend it, ${redrive(clues)}`,
  },
  Unauthorized: {
    symptom: 'Proxmox refuses our token, or the token cannot be read',
    hint: ({ trouble, tokenSource, ...clues }) => {
      const [user = '<user@realm>', name = '<token>'] = trouble.tokenId?.split('!') ?? []
      return (
        `on any node \`pveum user token list ${user}\`: is ${name} there and not expired (\`pveum user token modify ${user} ${name} --expire 0\`)? ` +
        `Is what ${tokenSource} holds its secret, as user@realm!token=secret? \`pveum user token remove ${user} ${name}\` and \`pveum user token add\` make a new one; store it there, ` +
        redrive(clues)
      )
    },
  },
  Unexpected: {
    symptom: 'an answer in a shape that we do not know, or a failure of AWS',
    hint: (clues) =>
      `is something between us and ${clues.endpoint} that answers in its place (\`curl --insecure ${clues.endpoint}/api2/json/version\`)? Mend it, ${redrive(clues)}`,
  },
  Unknown: {
    symptom: 'words of Proxmox that we do not know',
    hint: (clues) =>
      `its reason has them; ${taskLog(clues)} shows more. Report the words to the authors, mend what they name, ${redrive(clues)}`,
  },
  Unreachable: {
    symptom: 'no endpoint of the cluster answers, or none gets through to the node',
    hint: (clues) =>
      isBetweenNodes(clues)
        ? `a pveproxy answered, and got no answer from node ${clues.node}: its own pvedaemon, or another node. That is between them, whatever certificates we trust. ` +
          `On node ${clues.node} \`systemctl status pveproxy pvedaemon\`; on any other \`pvecm nodes\` (is ${clues.node} its name?) and \`curl --insecure https://${clues.node}:8006\`, ` +
          `after a change of names or certificates \`pvecm updatecerts\`. Mend it, ${redrive(clues)}`
        : `from where the functions run, \`curl --insecure ${clues.endpoint}/api2/json/version\`: is the VPN up? On node ${clues.node} \`systemctl status pveproxy\`. Mend it, ${redrive(clues)}`,
  },
  UnsupportedStorage: {
    symptom: 'a storage is not there, or not made for what it is asked',
    hint: (clues) =>
      `on node ${clues.node} \`pvesm status --content iso\` must list ${clues.isoStorage}: \`pvesm set ${clues.isoStorage} --content iso,vztmpl,backup\` (the list replaces the old one); ` +
      `\`pvesm status --content images\` must list ${clues.storage}; or name others in clusters.${clues.cluster}, ${redrive(clues)}`,
  },
  Untrusted: {
    symptom: "an endpoint's certificate is not the one that the configuration trusts",
    hint: (clues) =>
      `read it on the node itself, not over the network: on node ${clues.node} \`pvenode cert info\` (or \`openssl x509 -in /etc/pve/local/pve-ssl.pem -noout -fingerprint -sha256\`). ` +
      `If it was renewed, put the new one into clusters.${clues.cluster}.endpoints, fingerprint; if what is served at ${clues.endpoint} is another one, somebody is in between. Mend it, ${redrive(clues)}`,
  },
  UploadCorrupt: {
    symptom: 'the seed arrived other than it was sent',
    hint: (clues) => ofItself(clues, `on node ${clues.node} \`df -h /var/tmp\`: uploads pass through there`),
  },
  VmLocked: {
    symptom: 'the VM is locked: a backup, a migration, a snapshot',
    hint: (clues) =>
      `on node ${clues.node} \`qm config ${clues.vmid}\` names the lock and \`pvenode task list --vmid ${clues.vmid} --source active\` who holds it; if nobody does, \`qm unlock ${clues.vmid}\`, ${redrive(clues)}`,
  },
  VmMissing: {
    symptom: 'the VM is not where it was',
    hint: (clues) =>
      ofItself(clues, `on any node \`pvesh get /cluster/resources --type vm\` shows where ${clues.vmid} is`),
  },
  VolumeExists: {
    symptom: 'a volume that was left of an earlier VM has the number of a new one',
    hint: (clues) =>
      ofItself(
        clues,
        `${clues.volume === placeholders.volume ? 'it' : clues.volume} is of no VM if \`qm config ${clues.vmid}\` on node ${clues.node} finds none: then \`pvesm free\` removes it`,
      ),
  },
  VolumeMissing: {
    symptom: 'the seed or a disk vanishes from its storage',
    hint: (clues) =>
      `who removes ${clues.volume === placeholders.volume ? clues.seed : clues.volume}? On node ${clues.node} \`pvesm list ${clues.isoStorage}\`, and \`pvenode task list --typefilter imgdel\`. Stop that, ${redrive(clues)}`,
  },
}

/** How to tell whether a VM without a mark is ours, and the line that marks it again. */
export function markAgain(clues: Omit<Clues, 'trouble'>): string {
  const { node, vmid, uid, name, seed, mac, tags, mark } = clues
  const ours =
    `is it ours? On node ${node} \`qm config ${vmid}\`: the MAC in \`net0\` decides, ours has ${mac} and no other VM does; ` +
    `ours is also called ${name}, has ${seed} in \`ide2\` and the tags ${tags} (before it was configured, the name is all there is)`
  // An orphan's row does not know all of it, and is there to have the VM deleted.
  if (mark === placeholders.mark && uid !== placeholders.uid)
    return `${ours}. If it is ours, \`qm stop ${vmid} && qm destroy ${vmid} --purge --destroy-unreferenced-disks 1\``
  const line = `\`qm set ${vmid} --description '${mark}'\``
  return `${ours}. If it is ours, ${line} puts our mark there in place of all its notes (what is to stay of them goes into the same quotes, on lines of its own)`
}

function releasing({ vmid, release }: Clues): string {
  if (release !== placeholders.release) return `\`qm set ${vmid} ${release}\``
  return `\`qm set ${vmid} --protection 0\`, or, where it bears the tag, \`qm set ${vmid} --tags '<its other tags>'\``
}

/** pveproxy answered for another, which did not. Source: AnyEvent::HTTP's pseudo codes. */
const isBetweenNodes = ({ trouble: { status = 0 } }: Clues) => status >= 595 && status <= 599

function forbidden(clues: Clues): string {
  const { trouble, node, vmid, pool, cluster } = clues
  const { privilege, path, call } = trouble
  const grant = (lack: Lack) => grantCommand(lack, { ...clues, tokenId: trouble.tokenId })
  // Source: pve-guest-common GuestHelpers.pm, which names a privilege that nobody should give away for a tag.
  if (path === '/' && privilege === 'Sys.Modify') {
    return `the cluster keeps our tags for administrators: on any node \`pvesh set /cluster/options --user-tag-access user-allow=free\`, and take them out of registered-tags, ${redrive(clues)}`
  }
  if (path !== undefined && privilege !== undefined) {
    return `as root on any node \`${grant({ path, privilege })}\` (roles as in docs/proxmox-setup.md), ${redrive(clues)}`
  }
  // Of a pool, be it not there or not ours to clone into, Proxmox does not say what is missing. Source: qemu-server API2/Qemu.pm clone_vm.
  if (path?.startsWith('/pool/') || call?.endsWith('/clone')) {
    const access = grant({ path: `/pool/${pool}`, privilege: 'VM.Allocate' })
    return `as root on any node \`pveum pool add ${pool}\` if there is no such pool (or correct clusters.${cluster}.pool), and \`${access}\` (roles as in docs/proxmox-setup.md), ${redrive(clues)}`
  }
  const back = `\`pvesh set /pools/${pool} --vms ${vmid}\``
  return `is VM ${vmid} still in the pool? On node ${node} ${back} puts it back; else give the token the privileges of docs/proxmox-setup.md, ${redrive(clues)}`
}

/** Proxmox names the storage that it means. */
const storageNamed = ({ trouble, storage }: Clues) =>
  /\bstorage '([\w.-]+)'/.exec(trouble.message ?? '')?.[1] ?? storage

function rejected(clues: Clues): string {
  const fields = Object.entries(clues.trouble.detail ?? {}).map(([name, text]) => `${name}: ${text.trim()}`)
  const what = fields.length === 0 ? 'its reason says what' : fields.join('; ')
  return (
    `${what}. A size, port or address range comes from the request: publish it with a higher generation; ` +
    `pool, storage, bridge and vlan come from clusters.${clues.cluster} of the configuration: correct them, ${redrive(clues)}`
  )
}
