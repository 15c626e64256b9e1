import type { Cluster } from '../../lib/config.ts'
import { SEED_SLOT } from '../../lib/mark.ts'
import type { VmConfig } from '../../lib/proxmox/index.ts'
import type { Finding } from './event.ts'
import { known, type NodeFacts, type TemplateFacts } from './facts.ts'
import { about, ROLES, type Verdict } from './finding.ts'

/** Facts → findings about one image's template on one node. A clone inherits all of it, good and bad. */
export function judgeTemplate(facts: TemplateFacts, { node }: NodeFacts, cluster: Cluster): Finding[] {
  const { image, vmid, look, free } = facts
  const say = about({ target: 'node', where: node, node })
  const name = `template ${vmid} (${image})`
  if (!look.known) return [say.untold(name, look)]
  const template = look.value
  const missing = () => {
    const line = `qm list # on ${node}; then correct images.${image}.${node} in the configuration`
    return [say.fail('TemplateMissing', `${name} is not on ${node}`, line)]
  }
  if (template.kind === 'missing') return missing()
  if (template.kind === 'hidden') {
    if (known(free)) return missing()
    return [say.note('NotSeen', `${name} is there, and our token may clone it, not read it`, ROLES)]
  }
  if (template.kind === 'vm') {
    const text = `${name} is an ordinary VM, not a template`
    return [say.fail('NotATemplate', text, `qm template ${vmid} # on ${node}, once it is shut down`)]
  }
  return [
    ...judgeFitness(name, template.config, { vmid, node, say }),
    ...judgeDisks(name, template.config, cluster, say),
  ]
}

function judgeFitness(
  name: string,
  config: VmConfig,
  { vmid, node, say }: { vmid: number; node: string; say: Verdict },
): Finding[] {
  const { lock, bootDisk, disks, agent, protection, tags, cdroms } = config
  const set = (option: string) => `qm set ${vmid} ${option} # on ${node}`
  const findings: Finding[] = []
  if (lock !== undefined) {
    const text = `${name} is locked (${lock}), so it cannot be cloned`
    findings.push(
      say.fail('TemplateLocked', text, `qm unlock ${vmid} # on ${node}, when no task is at work on it`),
    )
  }
  if (!bootDisk) {
    findings.push(
      say.fail('TemplateUnfit', `${name} has no disk to boot from`, set('--boot order=<its disk>')),
    )
  }
  if (disks.some(({ slot }) => slot === SEED_SLOT)) {
    const text = `${name} has a disk on ${SEED_SLOT}, where the seed goes`
    findings.push(say.fail('TemplateUnfit', text, `move the disk of ${vmid} to another slot`))
  }
  // The rest is mended on each clone, and costs a call or a privilege each time.
  if (!agent)
    findings.push(
      say.warn('TemplateAgentOff', `${name} has its guest agent turned off`, set('--agent enabled=1')),
    )
  if (protection)
    findings.push(
      say.warn(
        'TemplateProtected',
        `${name} is protected, and so is each clone at first`,
        set('--protection 0'),
      ),
    )
  if (tags.size > 0) {
    const text = `${name} bears tags that are not ours: ${[...tags].join(', ')}`
    findings.push(say.warn('ForeignTags', text, set('--delete tags')))
  }
  const drive = cdroms.find(({ cloudInit }) => cloudInit)
  if (drive) {
    const text = `${name} carries Proxmox’s own cloud-init drive (${drive.slot}), which each clone must lose`
    findings.push(say.warn('CloudInitDrive', text, set(`--delete ${drive.slot}`)))
  }
  return findings
}

/** A linked clone's disks lie beside the template's, whatever storage the configuration names. */
function judgeDisks(name: string, { disks }: VmConfig, { clone, storage }: Cluster, say: Verdict): Finding[] {
  if (clone !== 'linked') return []
  const elsewhere = disks.map(({ volume }) => volume.split(':')[0] ?? '').filter((id) => id !== storage)
  if (elsewhere.length === 0) return []
  const text = `${name} has disks on ${[...new Set(elsewhere)].join(', ')}, not on ${storage}, where linked clones are looked for`
  return [
    say.fail(
      'LinkedCloneImpossible',
      text,
      'move its disks, correct storage, or set clone: full in the configuration',
    ),
  ]
}
