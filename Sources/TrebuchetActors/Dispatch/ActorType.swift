internal import Bytes
internal import Distributed
internal import Synchronization

/// What all actors of one type have in common: their methods and streams, by name. One for each type, never freed.
package class ActorType: @unchecked Sendable {
    // `@unchecked Sendable`: constant after `init`.

    /// What a call asks for.
    package enum Target {
        case method(Unmanaged<ActorMethod>)
        case stream(String)
        /// A method that the dispatch table does not have: one in an extension, or of an actor without `@Trebuchet`.
        case program(ProgramMethods.Method)
        case unknown(String)

        /// As `authorize` and limits of rates know it.
        package var name: String {
            switch self {
            case .method(let method): method._withUnsafeGuaranteedRef { $0.name }
            case .stream(let name), .unknown(let name): name
            case .program(let method): method.name
            }
        }
    }

    /// `Demo.TodoList`
    package final let name: String
    private final let methods: [ActorMethod]
    private final let methodsByName: ByteKeyTable<Unmanaged<ActorMethod>>
    final let streamNames: [String]
    /// Whether its actors look at who observes them.
    package final let isGated: Bool

    init(_ type: any DistributedActor.Type, methods: [ActorMethod], streamNames: [String]) {
        name = Self.name(of: type)
        self.methods = methods
        var table = ByteKeyTable<Unmanaged<ActorMethod>>()
        for method in methods { table[method.name] = .passUnretained(method) }
        methodsByName = table
        self.streamNames = streamNames
        isGated = (type as? any TrebuchetActor.Type)?._looksAtObservers ?? false
    }

    static func name(of type: any DistributedActor.Type) -> String {
        String(String(reflecting: type).prefix { $0 != "<" })
    }

    /// The method of this name; the type keeps it alive.
    @inline(__always)
    package final func method(_ target: UnsafeRawBufferPointer) -> Unmanaged<ActorMethod>? { methodsByName[target] }

    /// What a name stands for that is not simply that of a method.
    package final func target(_ identifier: String) -> Target {
        if let method = ProgramMethods.find(identifier) {
            if let own = methodsByName[method.name] { return .method(own) }
            // The runtime would call the method of any type with any actor, and take the one for the other.
            return method.declaringType == name ? .program(method) : .unknown(method.name)
        }
        if let stream = streamNames.first(where: { $0.utf8.elementsEqual(identifier.utf8) }) { return .stream(stream) }
        // Its bytes may have been escaped.
        if let method = methodsByName[identifier] { return .method(method) }
        return .unknown(identifier)
    }

    private let isHidden = Atomic<Bool>(false)
    /// Whether who looks inside is shown states of its actors, and arguments of their calls.
    package final var isInspectable: Bool { !isHidden.load(ordering: .relaxed) }
    /// Shows nobody what its actors have, from now on and in all servers of the process.
    package final func hide() { isHidden.store(true, ordering: .relaxed) }

    private let hasStayed = Atomic<Bool>(false)
    /// Whether none of the type has stayed before that was to go; true once.
    package final var isFirstToStay: Bool { !hasStayed.exchange(true, ordering: .relaxed) }

    /// What its dispatch table says of it.
    package var description: ActorTypeDescription {
        ActorTypeDescription(
            type: name,
            methods: methods.map {
                ActorTypeDescription.Method(
                    target: $0.name, arguments: $0.arguments, isIdempotent: $0.isIdempotent, isGeneric: $0.generics > 0)
            }, states: [], events: [])
    }

    /// For errors.
    package final var names: [String] { methods.map(\.name).sorted() + streamNames }
}

/// The same with its dispatch table.
final class TypedActorType<A: TrebuchetActor>: ActorType, @unchecked Sendable {
    // Constant, as its superclass.
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
        // Right because neither difference changes how the function is called: `isolated` is a promise about the
        // caller, the one that `assumeIsolated` drops with a check in each call, and `A` is a class, passed as the same
        // single pointer as any object. The record passes its own actor, which is an `A`.
        return unsafeBitCast(body, to: ActorMethod.Body.self)
    }

    private static func prepare(_ method: _DispatchMethod<A>) -> ActorMethod.Prepare? {
        guard case .suspending(let prepare) = method.body else { return nil }
        return { record, arguments in
            // Of this very type: a method is called with records of its own.
            let record = unsafeDowncast(record, to: TypedActorRecord<A>.self)
            return record.begin(try record.present(), try prepare(&arguments))
        }
    }
}

/// The types of actors that the program has used so far.
package enum ActorTypes {
    private static let known = Mutex<[ObjectIdentifier: ActorType]>([:])

    static func of<A: TrebuchetActor>(_ type: A.Type) -> TypedActorType<A> {
        let key = ObjectIdentifier(type)
        if let found = known.withLock({ $0[key] }) as? TypedActorType<A> { return found }
        let made = TypedActorType<A>()
        return known.withLock { types in
            if let found = types[key] as? TypedActorType<A> { return found }
            types[key] = made
            return made
        }
    }

    /// An actor type of any kind.
    package static func any(_ type: any DistributedActor.Type) -> ActorType {
        if let typed = type as? any TrebuchetActor.Type { return ofTyped(typed) }
        let key = ObjectIdentifier(type)
        return known.withLock { types in
            if let found = types[key] { return found }
            let made = ActorType(type, methods: [], streamNames: [])
            types[key] = made
            return made
        }
    }

    private static func ofTyped<A: TrebuchetActor>(_ type: A.Type) -> ActorType { of(type) }
}

extension TrebuchetActor {
    /// The dispatch table, built once.
    static var dispatch: _DispatchTable<Self> { ActorTypes.of(Self.self).table }

    /// What callers know of the method of this name; nil when the dispatch table has none.
    static func entry(_ name: String) -> (isIdempotent: Bool, generics: Int)? {
        dispatch.methods.first { $0.name == name }.map { ($0.isIdempotent, $0.generics) }
    }
}
