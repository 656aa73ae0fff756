internal import Bytes
internal import Distributed
internal import Synchronization

/// The methods and streams of an actor type, by name. One object for each type, never freed.
package class ActorType: @unchecked Sendable {
    // `@unchecked Sendable`: constant after `init`.

    /// The target of a call.
    package enum Target {
        case method(Unmanaged<ActorMethod>)
        case stream(String)
        case unknown(String)

        /// The name for `authorize` and rate limits.
        package var name: String {
            switch self {
            case .method(let method): method._withUnsafeGuaranteedRef { $0.name }
            case .stream(let name), .unknown(let name): name
            }
        }
    }

    /// The type name, such as `Demo.TodoList`.
    package final let name: String
    private final let methods: [ActorMethod]
    private final let methodsByName: ByteKeyTable<Unmanaged<ActorMethod>>
    private final let mangledNames: MangledNames
    final let streamNames: [String]
    /// Indicates whether actors of the type read their observers.
    package final let isGated: Bool

    init(_ type: any TrebuchetActor.Type, methods: [ActorMethod], streamNames: [String]) {
        name = Self.name(of: type)
        self.methods = methods
        var table = ByteKeyTable<Unmanaged<ActorMethod>>()
        for method in methods { table[method.name] = .passUnretained(method) }
        methodsByName = table
        mangledNames = MangledNames(of: type, methods: methods.map(\.name))
        self.streamNames = streamNames
        isGated = type._inspectsObservers
    }

    static func name(of type: any DistributedActor.Type) -> String {
        String(String(reflecting: type).prefix { $0 != "<" })
    }

    /// Returns the method with this name; the type retains it.
    @inline(__always)
    package final func method(_ target: UnsafeRawBufferPointer) -> Unmanaged<ActorMethod>? { methodsByName[target] }

    /// Returns the target for an identifier that is not the plain name of a method.
    package final func target(_ identifier: String) -> Target {
        if let stream = streamNames.first(where: { $0.utf8.elementsEqual(identifier.utf8) }) { return .stream(stream) }
        // The bytes of the name may have been escaped.
        if let method = methodsByName[identifier] { return .method(method) }
        return .unknown(identifier)
    }

    /// Returns the name of a method by the mangled name that clients of protocol versions 1 and 2 call it by; nil for others.
    package final func methodName(mangled: String, arguments count: Int) -> String? {
        mangledNames.method(mangled, arguments: count)
    }

    /// Takes calls of the methods with these names off the fast path.
    fileprivate final func checkCalls(of names: Set<String>) {
        for method in methods where names.contains(method.name) { method.isChecked.store(true, ordering: .relaxed) }
    }

    private let isHidden = Atomic<Bool>(false)
    /// Indicates whether the inspector may show states of its actors and arguments of their calls.
    package final var isInspectable: Bool { !isHidden.load(ordering: .relaxed) }
    /// Hides the actors of this type from the inspector, permanently and for all servers of the process.
    package final func hide() { isHidden.store(true, ordering: .relaxed) }

    private let hasStayed = Atomic<Bool>(false)
    /// Returns true at the first call: for the first idle actor of the type that stays active because of a change that is not
    /// persisted.
    package final var isFirstRetained: Bool { !hasStayed.exchange(true, ordering: .relaxed) }

    /// The description of the dispatch table.
    package var description: ActorTypeDescription {
        ActorTypeDescription(
            type: name,
            methods: methods.map {
                ActorTypeDescription.Method(
                    target: $0.name, arguments: $0.arguments, isIdempotent: $0.isIdempotent, isGeneric: $0.generics > 0)
            }, states: [], events: [])
    }

    /// The names of methods and streams, for error messages.
    package final var names: [String] { methods.map(\.name).sorted() + streamNames }
}

/// An actor type with a dispatch table.
final class TypedActorType<A: TrebuchetActor>: ActorType, @unchecked Sendable {
    // `@unchecked Sendable`: constant, like its superclass.
    let table: _DispatchTable<A>

    init() {
        let table = A._dispatch
        self.table = table
        let type = Self.name(of: A.self)
        let methods = table.methods.enumerated().map { index, method in
            ActorMethod(
                name: method.name, actor: "\(A.self)", type: type, index: index, arguments: method.arguments,
                generics: method.generics, isIdempotent: method.isIdempotent,
                isRedacted: method.isRedacted, body: Self.body(method), prepare: Self.prepare(method))
        }
        super.init(A.self, methods: methods, streamNames: table.streams.map(\.name))
    }

    override var description: ActorTypeDescription {
        var description = super.description
        description.states = table.streams.filter(\.isState).map(\.name)
        description.events = table.streams.filter { !$0.isState }.map(\.name)
        return description
    }

    private static func body(_ method: _DispatchMethod<A>) -> ActorMethod.Body? {
        guard case .inPlace(let body) = method.body else { return nil }
        // Right because neither difference changes the calling convention. `isolated` is a promise about the caller, the same
        // one that `assumeIsolated` removes with a check in each call. `A` is a class, passed as a single pointer like any
        // object. The record passes its own actor, which is an `A`.
        return unsafeBitCast(body, to: ActorMethod.Body.self)
    }

    private static func prepare(_ method: _DispatchMethod<A>) -> ActorMethod.Prepare? {
        guard case .suspending(let prepare) = method.body else { return nil }
        return { record, arguments in
            // The record has exactly this type: a method is called only with records of its type.
            let record = unsafeDowncast(record, to: TypedActorRecord<A>.self)
            return record.trackedOperation(try record.present(), try prepare(&arguments))
        }
    }
}

/// The actor types that the program has used so far.
package enum ActorTypes {
    private struct Known {
        private(set) var types: [ObjectIdentifier: ActorType] = [:]
        /// The names of methods that some server has a rate for.
        private var ratedNames: Set<String> = []

        mutating func insert(_ type: ActorType, _ key: ObjectIdentifier) {
            type.checkCalls(of: ratedNames)
            types[key] = type
        }

        mutating func checkCalls(of names: Set<String>) {
            ratedNames.formUnion(names)
            for type in types.values { type.checkCalls(of: names) }
        }
    }

    private static let known = Mutex(Known())

    static func of<A: TrebuchetActor>(_ type: A.Type) -> TypedActorType<A> {
        let key = ObjectIdentifier(type)
        if let found = known.withLock({ $0.types[key] }) as? TypedActorType<A> { return found }
        let created = TypedActorType<A>()
        return known.withLock { known in
            if let found = known.types[key] as? TypedActorType<A> { return found }
            known.insert(created, key)
            return created
        }
    }

    /// Returns the entry of an actor type.
    package static func entry<A: TrebuchetActor>(of type: A.Type) -> ActorType { of(type) }

    /// Takes calls of the methods with these names off the fast path, in all types. Servers with rates for methods call it before
    /// they have connections, so that their other methods stay on it.
    package static func checkCalls(of names: Set<String>) {
        guard !names.isEmpty else { return }
        known.withLock { $0.checkCalls(of: names) }
    }
}

extension TrebuchetActor {
    /// The dispatch table, built once.
    static var dispatch: _DispatchTable<Self> { ActorTypes.of(Self.self).table }

    /// Returns the properties of the method with this name that callers need; nil if the dispatch table has no such method.
    static func entry(_ name: String) -> (isIdempotent: Bool, generics: Int)? {
        dispatch.methods.first { $0.name == name }.map { ($0.isIdempotent, $0.generics) }
    }
}
