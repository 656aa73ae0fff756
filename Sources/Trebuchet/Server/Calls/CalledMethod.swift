/// What a call that takes time is to run.
enum CalledMethod: Sendable {
    case table(ActorMethod)
    case program(ProgramMethods.Method)

    var runsInPlace: Bool {
        switch self {
        case .table(let method): method.runsInPlace
        case .program: false
        }
    }

    /// The same method of the actor that was made, whose type may be another by then.
    func again(in type: ActorType) -> CalledMethod? {
        switch (self, type.target(name)) {
        case (.table(let old), .method(let new)):
            let new = new.takeUnretainedValue()
            return old.arguments == new.arguments && old.generics == new.generics ? .table(new) : nil
        case (.program, .program(let new)): return .program(new)
        default: return nil
        }
    }

    private var name: String {
        switch self {
        case .table(let method): method.name
        case .program(let method): method.identifier
        }
    }
}
