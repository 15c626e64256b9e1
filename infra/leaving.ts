/** Phases in which something of a proxy may be on a cluster. */
const PRESENT = ['Pending', 'Provisioning', 'Ready', 'Failed', 'Deleting'] as const

/**
 * Why a stack must not go: with its tables and functions nobody would be left who knows of its VMs, or could delete them.
 * Undefined when it may.
 */
export async function reasonToStay(countIn: (phase: string) => Promise<number>): Promise<string | undefined> {
  const counts = await Promise.all(PRESENT.map(async (phase) => ({ phase, count: await countIn(phase) })))
  const left = counts.filter(({ count }) => count > 0)
  if (left.length === 0) return undefined
  const list = left.map(({ phase, count }) => `${count} ${phase}`).join(', ')
  return `there are proxies (${list}): delete them first, with \`egress delete\`, and wait until \`egress list\` shows none`
}
