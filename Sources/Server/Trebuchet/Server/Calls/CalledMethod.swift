/// The method of a call that takes time.
enum CalledMethod: Sendable {
    case table(ActorMethod)
    case program(ProgramMethods.Method)

    var runsInPlace: Bool {
        switch self {
        case .table(let method): method.runsInPlace
        case .program: false
        }
    }

    /// Returns whether error descriptions must not be logged.
    func hidesErrors(_ type: ActorType) -> Bool { isRedacted || !type.isInspectable }

    var isRedacted: Bool {
        switch self {
        case .table(let method): method.isRedacted
        case .program: false
        }
    }

    /// The row in which its calls are counted.
    var row: Int {
        switch self {
        case .table(let method): method.row
        case .program: TimedOperation.otherCalls.rawValue
        }
    }

    /// Returns the same method of the activated actor, whose type may differ by then.
    func resolved(in type: ActorType) -> CalledMethod? {
        switch (self, type.target(name)) {
        case (.table(let old), .method(let new)):
            let new = new.takeUnretainedValue()
            return old.arguments == new.arguments && old.generics == new.generics ? .table(new) : nil
        case (.program, .program(let new)): return .program(new)
        default: return nil
        }
    }

    /// The name on the wire.
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
    /// See `CalledMethod.hidesErrors`.
    func hidesErrors(_ type: ActorType) -> Bool { isRedacted || !type.isInspectable }
}
