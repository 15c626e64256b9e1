import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { FailureCode } from '../../lib/failure.ts'
import { placeholders, symptoms } from '../../lib/symptoms.ts'
import { defaultWorld } from '../../sim/index.ts'
import { openSim } from '../sim/harness.ts'

// What is to be typed on a host can be tried on the simulated one, or it says why not.

const world = defaultWorld()
const { sim } = openSim({ world, tokens: world.tokens })
afterAll(() => sim.close())

const PROGRAMS =
  /^(qm|pveum|pvesm|pvesh|pvenode|pvecm|ha-manager|pve8to9|pve-firewall|systemctl|journalctl|df|free|grep|getent|ifup)\b/

const page = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')
const quoted = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, line = '']) => line)
const blocks = (text: string) =>
  [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, lines = '']) => lines.split('\n'))

/** A line of these pages as words of a shell, its variables and placeholders filled in. */
function commandsIn(line: string): string[][] {
  const plain = line
    .replace(/^for \w+ in [^;]*; do (.*); done$/, '$1')
    .replace(/ +#.*$/, '')
    .replace(/ > \/dev\/null/g, '')
    .replace(/"\$\{BOTH\[@\]\}"/g, '--users egress@pve')
    .replace(/<vmid>|\$\{?(id|ID)\}?/g, '9000')
    .replace(/<user@realm>/g, 'egress@pve')
    .replace(/\$\{?(\w+)\}?/g, '$1')
    .replace(/<[^>]*>/g, 'x')
  return plain
    .split(' && ')
    .map((command) =>
      [...command.matchAll(/(?:"[^"]*"|'[^']*'|\S)+/g)].map(([word]) => word.replace(/["']/g, '')),
    )
}

/** Names of programs are quoted in prose too; a command has more than one word. */
const typed = (lines: string[]) =>
  [...new Set(lines)].filter((line) =>
    commandsIn(line).some((words) => words.length > 1 && PROGRAMS.test(words[0] ?? '')),
  )

const sources: [string, string[]][] = [
  ['the hints', FailureCode.options.flatMap((code) => quoted(symptoms[code].hint(placeholders)))],
  ['docs/operations.md', [...quoted(page('operations.md')), ...blocks(page('operations.md'))]],
  ['docs/proxmox-setup.md', [...quoted(page('proxmox-setup.md')), ...blocks(page('proxmox-setup.md'))]],
]

describe.each(sources)('what is to be typed on a host by %s', (_, lines) => {
  it('is there at all', () => {
    expect(typed(lines).length).toBeGreaterThan(5)
  })

  it.each(typed(lines))('is known to the simulated one, or it says why not: %s', (line) => {
    for (const words of commandsIn(line)) {
      if (!PROGRAMS.test(words[0] ?? '')) continue
      const { exitCode, stderr } = sim.root('pve1', words)
      if (exitCode === 127) expect(stderr).toMatch(/not in the simulator: \w+ .+/)
      else expect(stderr).not.toMatch(/unknown command|Unknown option/)
    }
  })
})
