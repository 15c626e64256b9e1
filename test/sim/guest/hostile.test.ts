import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DaemonRefusal } from '../../../sim/guest/daemon-refusal.ts'
import { readInstance } from '../../../sim/guest/instance.ts'
import { bootSystem, createMachine } from '../../../sim/guest/machine.ts'
import type { Yaml } from '../../../sim/guest/merge.ts'
import { configureCard } from '../../../sim/guest/network.ts'
import { runScript } from '../../../sim/guest/shell.ts'
import { parseSquidConf } from '../../../sim/guest/squid.ts'
import { parseTinyproxyConf } from '../../../sim/guest/tinyproxy.ts'

const silent = () => {}
/** Texts made of the pieces that mean something, in any order. */
const pieces = (...words: string[]) =>
  fc.array(fc.constantFrom(...words), { maxLength: 40 }).map((list) => list.join(''))

describe('sim: guest: hostile seeds', () => {
  it('neither throw nor hang, whatever their script is made of', () => {
    const script = pieces(
      'if ',
      'then ',
      'else\n',
      'fi\n',
      'for x in ',
      'do\n',
      'done\n',
      '{ ',
      '} ',
      '( ',
      ') ',
      '; ',
      '&& ',
      '|| ',
      '| ',
      '! ',
      "'",
      '"',
      '$x',
      '$' + '{x}',
      '\\',
      '<<E\n',
      'E\n',
      '> /f ',
      '>> ',
      '2>&1 ',
      '# ',
      '\n',
      'echo a ',
      'test ',
      'install -m ',
      'apt-get install ',
      'systemctl start ',
      'exit 2\n',
      'set -e\n',
      'x=1 ',
    )
    fc.assert(
      fc.property(script, (text) => {
        const machine = createMachine(['tinyproxy'])
        const system = bootSystem(machine, { hasAgentPort: true, log: silent })
        expect(runScript(text, 'test', { machine, system, log: silent })).toBeTypeOf('number')
      }),
      { numRuns: 2000 },
    )
  })

  it('neither throw nor hang, whatever their documents hold', () => {
    const document = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      pieces(
        'MIME-Version: 1.0\n',
        'Content-Type: multipart/mixed; boundary=b\n',
        'Content-Type: text/cloud-config\n',
        'Content-Transfer-Encoding: base64\n',
        '--b\n',
        '--b--\n',
        '\n',
        '#cloud-config\n',
        '#cloud-config-archive\n',
        '#!/bin/sh\n',
        'merge_how: ',
        'list(append)+',
        'dict()',
        '[',
        '{',
        'a: 1\n',
        '- &a x\n',
        '*a',
        '<<: ',
        '!!python/object x',
      ).map((text) => Buffer.from(text)),
    )
    fc.assert(
      fc.property(document, document, document, document, (metaData, userData, vendorData, networkConfig) => {
        const instance = readInstance({ metaData, userData, vendorData, networkConfig }, silent)
        expect(configureCard('bc:24:11:00:00:01', instance.network, silent).name).toBeTypeOf('string')
      }),
      { numRuns: 1000 },
    )
  })

  it('bring no network-config that cannot be read', () => {
    const value = fc.letrec<{ yaml: Yaml }>((tie) => ({
      yaml: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<Yaml>(null, 1, 2, true, 'dhcp', 'physical', '10.0.0.1/24'),
        fc.array(tie('yaml'), { maxLength: 3 }),
        fc.dictionary(
          fc.constantFrom(
            'network',
            'version',
            'ethernets',
            'config',
            'match',
            'macaddress',
            'type',
            'subnets',
            'addresses',
          ),
          tie('yaml'),
        ),
      ),
    })).yaml
    fc.assert(
      fc.property(value, (network) => configureCard('bc:24:11:00:00:01', network, silent).isUp !== undefined),
    )
  })

  it('bring no configuration a proxy chokes on: it starts or refuses', () => {
    const conf = pieces(
      'Port 8888\n',
      'Allow ',
      'Deny ',
      '10.0.0.0/8',
      '/',
      ':',
      '::1',
      'BasicAuth a b\n',
      'Listen ',
      '"',
      ' ',
      '\n',
      '#',
      'http_port ',
      '3128\n',
      'acl x src ',
      'http_access allow ',
      '!',
      'all\n',
      'x\n',
    )
    fc.assert(
      fc.property(conf, (text) => {
        for (const parse of [(t: string) => parseTinyproxyConf(t, () => false), parseSquidConf]) {
          try {
            expect(parse(text).port).toBeGreaterThan(0)
          } catch (cause) {
            expect(cause).toBeInstanceOf(DaemonRefusal)
          }
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('are done with in time when they are large', () => {
    const machine = createMachine()
    const system = bootSystem(machine, { hasAgentPort: true, log: silent })
    const script = `${'echo line >> /f\n'.repeat(20_000)}`
    const started = performance.now()
    runScript(script, 'test', { machine, system, log: silent })
    expect(machine.files.get('/f')?.text).toHaveLength(100_000)
    expect(performance.now() - started).toBeLessThan(5000)
  })
})
