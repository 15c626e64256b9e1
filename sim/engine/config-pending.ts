import type { Vm } from './state.ts'

const atOnce =
  /^(?:name|description|tags|onboot|protection|startup|hookscript|shares|migrate_downtime|migrate_speed|vmstatestorage|agent|ci\w+|ipconfig\d+|nameserver|searchdomain|sshkeys|net\d+|unused\d+)$/

export function put(vm: Vm, key: string, value: string): void {
  vm.pending.delete = vm.pending.delete.filter((other) => other !== key)
  delete vm.pending.set[key]
  if (vm.run && !atOnce.test(key)) vm.pending.set[key] = value
  else vm.config[key] = value
}

export function drop(vm: Vm, key: string): void {
  delete vm.pending.set[key]
  if (vm.config[key] === undefined) return
  if (vm.run && !atOnce.test(key)) vm.pending.delete = [...new Set([...vm.pending.delete, key])]
  else delete vm.config[key]
}
