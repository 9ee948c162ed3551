func.func @first() {
  fly.never_heard_of() : () -> ()
  return
}
// -----
func.func @right() {
  return
}
// -----
func.func @second() {
  "fly.unheard_of"() : () -> ()
  return
}
