public import StateMachines

// In another file than the machines.

extension Scripted: Scripted.EffectRunner {
    func runFetch(_ value: Int) -> IOResultStream { .single { "f\(value)" } }
    func runLog(_ text: String) -> IOResultStream {
        IOResultStream { continuation in
            continuation.yield("l\(text)1")
            continuation.yield("l\(text)2")
            continuation.finish()
        }
    }
    func runPing() -> IOResultStream { .single { "p" } }
}

extension Named: Named.EffectRunner {
    public func runLetter(_ `in`: String) -> IOResultStream { .single { "in \(`in`)" } }
    public func runDefault() -> IOResultStream { .single { "default" } }
    public func runSwitch(_ number: Int) -> IOResultStream { .single { "case \(number)" } }
    public func runFetch(_ id: Int) -> IOResultStream { .single { "id \(id)" } }
    public func runFetchName(_ name: Int) -> IOResultStream { .single { "name \(name)" } }
    public func runSend(_ request: IOEffect.Request) -> IOResultStream { .single { request.text } }
    #if DEBUG
        public func runProbe() -> IOResultStream { .single { "probe" } }
    #endif
}
