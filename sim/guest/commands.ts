import { isUnit } from './machine.ts'
import type { Inside, Result } from './shell.ts'

type Run = (args: string[], input: string, inside: Inside) => Result | number

/** The commands a guest of the simulator really carries out. */
const commands: Record<string, Run> = {
  true: () => 0,
  ':': () => 0,
  false: () => 1,
  set: () => 0,
  export: () => 0,
  echo: (args) => ({
    status: 0,
    output: `${args.filter((arg) => arg !== '-n' && arg !== '-e').join(' ')}${args[0] === '-n' ? '' : '\n'}`,
  }),
  printf: (args) => ({ status: 0, output: printf(args) }),
  cat: (args, input, { machine }) => ({
    status: args.every((path) => path === '-' || machine.files.has(path)) ? 0 : 1,
    output: args.length === 0 ? input : args.map((path) => machine.files.get(path)?.text ?? input).join(''),
  }),
  tee: (args, input, { machine }) => {
    for (const path of operands(args)) {
      const before = args.includes('-a') ? (machine.files.get(path)?.text ?? '') : ''
      machine.files.set(path, { text: before + input, mode: machine.files.get(path)?.mode ?? 0o644 })
    }
    return { status: 0, output: input }
  },
  install: (args, input, inside) => install(args, input, inside),
  cp: (args, _, inside) => copy(operands(args), inside, false),
  mv: (args, _, inside) => copy(operands(args), inside, true),
  rm: (args, _, { machine }) => {
    const gone = operands(args).map((path) => machine.files.delete(path))
    return gone.every(Boolean) || args.some((arg) => /^-\w*f/.test(arg)) ? 0 : 1
  },
  touch: (args, _, { machine }) => {
    for (const path of operands(args))
      if (!machine.files.has(path)) machine.files.set(path, { text: '', mode: 0o644 })
    return 0
  },
  chmod: ([mode = '', ...paths], _, { machine }) => {
    const files = operands(paths).map((path) => machine.files.get(path))
    for (const file of files) if (file && /^[0-7]+$/.test(mode)) file.mode = Number.parseInt(mode, 8)
    return files.every(Boolean) ? 0 : 1
  },
  command: (args, _, inside) => findBinary(operands(args)[0] ?? '', inside),
  which: (args, _, inside) => findBinary(args[0] ?? '', inside),
  test: (args, _, inside) => (test(args, inside) ? 0 : 1),
  '[': (args, _, inside) => (test(args.slice(0, -1), inside) ? 0 : 1),
  'apt-get': (args, _, inside) => apt(args, inside),
  apt: (args, _, inside) => apt(args, inside),
  systemctl: (args, _, inside) => systemctl(args, inside),
  service: ([unit = '', verb = ''], _, inside) => systemctl([verb, unit], inside),
}

/** Commands without a trace in anything the simulator shows. */
const quiet = ['mkdir', 'chown', 'chgrp', 'sleep', 'logger', 'cd', 'umask', 'sync', 'ln']

/** Runs one command. One that is not known here is noted, and taken for a success. */
export function runCommand([name = '', ...args]: string[], input: string, inside: Inside): Result {
  const run = commands[name.replace(/^\/(?:usr\/)?s?bin\//, '')]
  if (run) {
    const result = run(args, input, inside)
    return typeof result === 'number' ? { status: result, output: '' } : result
  }
  if (!quiet.includes(name)) inside.log(`not carried out by the simulator: ${[name, ...args].join(' ')}`)
  return { status: 0, output: '' }
}

function operands(args: string[]): string[] {
  return args.filter((arg) => !arg.startsWith('-'))
}

function printf([format = '', ...values]: string[]): string {
  const rest = [...values]
  const filled = format.replace(/%s/g, () => rest.shift() ?? '')
  return filled.replace(/\\([nt\\])/g, (_, letter: string) => ({ n: '\n', t: '\t' })[letter] ?? '\\')
}

function install(args: string[], input: string, { machine }: Inside): number {
  const at = args.indexOf('-m')
  const mode = Number.parseInt(at < 0 ? '0755' : (args[at + 1] ?? ''), 8)
  const [source = '', target = ''] = operands(
    args.filter((_, index) => at < 0 || (index !== at && index !== at + 1)),
  )
  if (args.includes('-d')) return 0
  const text = source === '/dev/stdin' ? input : machine.files.get(source)?.text
  if (text === undefined || target === '') return 1
  machine.files.set(target, { text, mode })
  return 0
}

function copy([source = '', target = '']: string[], { machine }: Inside, isMove: boolean): number {
  const file = machine.files.get(source)
  if (!file || target === '') return 1
  machine.files.set(target, { ...file })
  if (isMove) machine.files.delete(source)
  return 0
}

/** Commands every Debian machine has, beside those of its packages. */
const everywhere = [
  'sh',
  'bash',
  'systemctl',
  'apt-get',
  'apt',
  'cloud-init',
  'python3',
  'ip',
  'sed',
  'grep',
  'awk',
]

function findBinary(name: string, { system }: Inside): Result | number {
  const exists = system.binaryExists(name) || everywhere.includes(name)
  return exists ? { status: 0, output: `/usr/bin/${name}\n` } : 1
}

function test([first = '', second = '', third = '']: string[], inside: Inside): boolean {
  const { machine } = inside
  if (first === '!') return !test([second, third], inside)
  if (second === '=' || second === '==') return first === third
  if (second === '!=') return first !== third
  if (first === '-n') return second !== ''
  if (first === '-z') return second === ''
  if (first === '-d') return [...machine.files.keys()].some((path) => path.startsWith(`${second}/`))
  if (first === '-s') return (machine.files.get(second)?.text ?? '') !== ''
  if (/^-[efrx]$/.test(first)) return machine.files.has(second)
  return first !== ''
}

function apt(args: string[], { machine, system, log }: Inside): number {
  // An option may take its value from the next word.
  const words = args.filter(
    (arg, index) => !arg.startsWith('-') && !/^(?:-o|--option|-t|-c)$/.test(args[index - 1] ?? ''),
  )
  const [verb, ...names] = words
  if (verb === 'install') {
    for (const name of names) {
      if (!/^[a-z0-9][a-z0-9+.-]+(?:=\S+)?$/.test(name)) {
        log(`E: Unable to locate package ${name}`)
        return 100
      }
    }
    const missing = names.find((name) => !machine.packages.has(name.replace(/=.*/, '')))
    if (missing !== undefined && !system.hasMirror) {
      // `update` had only warned. Source: a Debian 12 without network.
      log(`E: Unable to locate package ${missing}`)
      return 100
    }
    for (const name of names) system.install(name.replace(/=.*/, ''))
  }
  return 0
}

function systemctl(args: string[], { machine, system, log }: Inside): number {
  const [verb = '', ...names] = operands(args)
  const isNow = args.includes('--now')
  let status = 0
  for (const name of names.map((unit) => unit.replace(/\.service$/, ''))) {
    if (!isUnit(name)) {
      log(`systemd: ${verb} ${name}: not carried out by the simulator`)
      continue
    }
    if (!system.isInstalled(name)) {
      log(`Failed to ${verb} ${name}.service: Unit ${name}.service not found.`)
      status = 5
      continue
    }
    const done = (() => {
      switch (verb) {
        case 'start':
          return system.start(name)
        case 'restart':
        case 'reload':
        case 'try-restart':
        case 'reload-or-restart':
          return system.restart(name)
        case 'stop':
          system.stop(name)
          return true
        case 'enable':
          machine.enabled.add(name)
          return !isNow || system.start(name)
        case 'disable':
        case 'mask':
          machine.enabled.delete(name)
          if (isNow) system.stop(name)
          return true
        case 'is-active':
          return system.running.has(name)
        case 'is-enabled':
          return machine.enabled.has(name)
        default:
          return true
      }
    })()
    if (!done) status = verb === 'is-active' ? 3 : 1
  }
  return status
}
