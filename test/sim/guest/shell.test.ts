import { describe, expect, it } from 'vitest'
import { bootSystem, createMachine } from '../../../sim/guest/machine.ts'
import { runScript } from '../../../sim/guest/shell.ts'

function run(script: string, preinstalled: string[] = []) {
  const log: string[] = []
  const machine = createMachine(preinstalled)
  const system = bootSystem(machine, { hasAgentPort: true, log: (line) => log.push(line) })
  const status = runScript(script, 'test', { machine, system, log: (line) => log.push(line) })
  const text = (path: string) => machine.files.get(path)?.text
  return { status, log, machine, system, text }
}

describe('sim: guest: shell', () => {
  it.each([
    ['a command', 'echo one > /f', 'one\n'],
    [
      'quotes and variables',
      `name="big world"; echo "hello $name" '$name' \${name} \\$x > /f`,
      'hello big world $name big world $x\n',
    ],
    ['a here-document, as it is', 'cat > /f <<\'END\'\n$a `b` "c"\nEND', '$a `b` "c"\n'],
    ['a here-document without its tabs', 'cat <<-END > /f\n\tindented\n\tEND\n', 'indented\n'],
    ['what is appended', 'echo a > /f; echo b >> /f', 'a\nb\n'],
    ['a pipe', 'printf "%s-%s\\n" a b | tee /f > /dev/null', 'a-b\n'],
    ['and, or, not', 'false && echo no > /f || echo yes > /f; ! false && echo also >> /f', 'yes\nalso\n'],
    ['if', 'if false; then echo a > /f; elif test -e /x; then echo b > /f; else echo c > /f; fi', 'c\n'],
    ['for', 'for x in a b; do\n  echo $x >> /f\ndone', 'a\nb\n'],
    ['groups', '{ echo a; } && ( echo b > /f )', 'b\n'],
    ['what goes elsewhere', 'echo a > /f 2>&1; command -v nothing >/dev/null 2>&1 || echo b >> /f', 'a\nb\n'],
    ['what goes nowhere', 'if true 2>/dev/null; then echo a &>/dev/null; echo b > /f; fi', 'b\n'],
    ['continued lines and comments', 'echo a \\\n  b > /f # not this\n# nor this', 'a b\n'],
    ['tests', '[ -n "x" ] && [ a = a ] && [ ! -e /g ] && test -z "" && echo ok > /f', 'ok\n'],
    [
      'files',
      'touch /g; cp /g /h; mv /h /i; rm -f /g /nothing; [ -f /i ] && [ ! -f /g ] && echo ok > /f',
      'ok\n',
    ],
  ])('understands %s', (_, script, wanted) => {
    const { text, log } = run(script)
    expect(text('/f')).toBe(wanted)
    expect(log).toEqual([])
  })

  it('stops at the first failure under set -e, but not at one that is asked about', () => {
    expect(
      run('set -eu\nif false; then :; fi\nfalse || true\n! true\nfalse\necho late > /f').text('/f'),
    ).toBeUndefined()
    expect(run('set -eu\nfalse').status).toBe(1)
    expect(run('false\necho late > /f').text('/f')).toBe('late\n')
    expect(run('exit 3\necho late > /f')).toMatchObject({ status: 3 })
  })

  it('writes a file with its mode', () => {
    const { machine } = run(
      "install -D -m 0600 /dev/stdin /etc/x/y <<'END'\nsecret\nEND\nchmod 0640 /etc/x/y",
    )
    expect(machine.files.get('/etc/x/y')).toEqual({ text: 'secret\n', mode: 0o640 })
  })

  it('installs packages, and Debian starts what it starts', () => {
    const script =
      'DEBIAN_FRONTEND=noninteractive apt-get install --yes -o Dpkg::Options::=--force-confold tinyproxy qemu-guest-agent jq=1.6'
    const { machine, system } = run(`apt-get update -q\n${script}`)
    expect([...machine.packages]).toEqual(['tinyproxy', 'qemu-guest-agent', 'jq'])
    expect([...system.running.keys()]).toEqual(['tinyproxy'])
  })

  it('manages services', () => {
    expect(
      run('systemctl start qemu-guest-agent --no-block', ['qemu-guest-agent']).system.running.has(
        'qemu-guest-agent',
      ),
    ).toBe(true)
    expect(
      run('systemctl enable --now tinyproxy.service', ['tinyproxy']).system.running.has('tinyproxy'),
    ).toBe(true)
    expect(
      run('systemctl start tinyproxy; systemctl disable --now tinyproxy', ['tinyproxy']).system.running.size,
    ).toBe(0)
    expect(run('service tinyproxy restart', ['tinyproxy']).system.running.has('tinyproxy')).toBe(true)
    expect(run('systemctl is-active tinyproxy', ['tinyproxy']).status).toBe(3)
    expect(run('systemctl restart tinyproxy')).toMatchObject({
      status: 5,
      log: ['Failed to restart tinyproxy.service: Unit tinyproxy.service not found.'],
    })
  })

  it('keeps a service on its old configuration until it is started again', () => {
    const write = 'apt-get install -y tinyproxy; echo "Port 3128" > /etc/tinyproxy/tinyproxy.conf'
    expect(run(write).system.running.get('tinyproxy')).toMatchObject({ port: 8888 })
    expect(run(`${write}; systemctl restart tinyproxy`).system.running.get('tinyproxy')).toMatchObject({
      port: 3128,
    })
  })

  it('leaves a service down whose configuration it refuses', () => {
    const { status, system, log } = run(
      'echo nonsense > /etc/tinyproxy/tinyproxy.conf; apt-get install -y tinyproxy; systemctl start tinyproxy',
    )
    expect(status).toBe(1)
    expect(system.running.size).toBe(0)
    expect(log).toContain('tinyproxy: ERROR: Syntax error on line 1')
  })

  it('notes what it does not carry out, and goes on', () => {
    expect(run('curl -fsS https://example.test/x\necho a > /f')).toMatchObject({
      status: 0,
      log: ['not carried out by the simulator: curl -fsS https://example.test/x'],
    })
  })

  it.each([
    ['while true; do :; done', 'while'],
    ['x=$(date)', 'command substitution'],
    ['x=`date`', 'command substitution'],
    ["echo 'open", 'an open quote'],
    ['if true; then echo', 'an open if'],
    ['echo a > ', 'a redirection to nothing'],
  ])('does nothing of a script it cannot follow: %j', (script, what) => {
    const { log, status, machine } = run(`touch /f\n${script}`)
    expect([status, machine.files.size]).toEqual([0, 0])
    expect(log[0]).toContain("test: not carried out, the simulator's shell does not know")
    expect(log[0]).toContain(what)
  })

  it('leaves other languages alone', () => {
    expect(run('#!/usr/bin/env python3\nimport os').log).toEqual([
      'test: written for python3, not carried out by the simulator',
    ])
    expect(run('#!/bin/bash\necho a > /f').text('/f')).toBe('a\n')
  })
})
