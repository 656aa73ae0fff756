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

    /// Whether no log is to have what its errors say.
    func hidesErrors(_ type: ActorType) -> Bool { isRedacted || !type.isInspectable }

    var isRedacted: Bool {
        switch self {
        case .table(let method): method.isRedacted
        case .program: false
        }
    }

    /// Where its calls are counted.
    var row: Int {
        switch self {
        case .table(let method): method.row
        case .program: TimedWork.otherCalls.rawValue
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

    /// As it is called on the wire.
    var shownName: String {
        switch self {
        case .table(let method): method.name
        case .program(let method): method.name
        }
    }

    private var name: String {
        switch self {
        case .table(let method): method.name
        case .program(let method): method.identifier
        }
    }
}

extension ActorMethod {
    /// As `CalledMethod.hidesErrors`.
    func hidesErrors(_ type: ActorType) -> Bool { isRedacted || !type.isInspectable }
}
