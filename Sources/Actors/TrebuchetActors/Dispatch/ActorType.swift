internal import Bytes
internal import Distributed
internal import Synchronization

/// The methods and streams of an actor type, by name. One object for each type, never freed.
package final class ActorType: Sendable {
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
    package let name: String
    private let methods: [ActorMethod]
    // `nonisolated(unsafe)`: never changed after `init`.
    private nonisolated(unsafe) let methodsByName: ByteKeyTable<Unmanaged<ActorMethod>>
    private let mangledNames: MangledNames
    let streamNames: [String]
    /// Indicates whether actors of the type read their observers.
    package let isGated: Bool
    /// The routes over HTTP by the names of their methods.
    package let routes: [(target: String, route: _HTTPRoute)]

    private let states: [String]
    private let events: [String]
    private let table: any AnyObject & Sendable

    /// The dispatch table of a type.
    private final class Table<A: TrebuchetActor>: Sendable {
        let table: _DispatchTable<A>

        init(_ table: _DispatchTable<A>) { self.table = table }
    }

    fileprivate init<A: TrebuchetActor>(_ type: A.Type) {
        let table = A._dispatch
        let name = String(String(reflecting: type).prefix { $0 != "<" })
        let methods = table.methods.enumerated().map { index, method in
            ActorMethod(
                name: method.name, actor: "\(A.self)", type: name, index: index, arguments: method.arguments,
                generics: method.generics, isIdempotent: method.isIdempotent,
                isRedacted: method.isRedacted, body: Self.body(method), prepare: Self.prepare(method))
        }
        (self.name, self.methods, self.table) = (name, methods, Table(table))
        var methodsByName = ByteKeyTable<Unmanaged<ActorMethod>>()
        for method in methods { methodsByName[method.name] = .passUnretained(method) }
        self.methodsByName = methodsByName
        mangledNames = MangledNames(of: type, methods: methods.map(\.name))
        streamNames = table.streams.map(\.name)
        states = table.streams.filter(\.isState).map(\.name)
        events = table.streams.filter { !$0.isState }.map(\.name)
        isGated = type._inspectsObservers
        routes = table.methods.compactMap { method in method.http.map { (method.name, $0) } }
    }

    private static func body<A: TrebuchetActor>(_ method: _DispatchMethod<A>) -> ActorMethod.Body? {
        guard case .inPlace(let body) = method.body else { return nil }
        // Right because neither difference changes the calling convention. `isolated` is a promise about the caller, the same
        // one that `assumeIsolated` removes with a check in each call. `A` is a class, passed as a single pointer like any
        // object. The record passes its own actor, which is an `A`.
        return unsafeBitCast(body, to: ActorMethod.Body.self)
    }

    private static func prepare<A: TrebuchetActor>(_ method: _DispatchMethod<A>) -> ActorMethod.Prepare? {
        guard case .suspending(let prepare) = method.body else { return nil }
        return { record, arguments in
            // The record has exactly this type: a method is called only with records of its type.
            let record = unsafeDowncast(record, to: TypedActorRecord<A>.self)
            return record.trackedOperation(try record.present(), try prepare(&arguments))
        }
    }

    /// Returns the dispatch table.
    ///
    /// - Parameter type: the type that this object was created for.
    func dispatchTable<A: TrebuchetActor>(of type: A.Type) -> _DispatchTable<A> {
        // `init` has set it to an object of exactly this type.
        unsafeDowncast(table, to: Table<A>.self).table
    }

    /// Returns the method with this name; the type retains it.
    @inline(__always)
    package func method(_ target: UnsafeRawBufferPointer) -> Unmanaged<ActorMethod>? { methodsByName[target] }

    /// Returns the target for an identifier that is not the plain name of a method.
    package func target(_ identifier: String) -> Target {
        if let stream = streamNames.first(where: { $0.utf8.elementsEqual(identifier.utf8) }) { return .stream(stream) }
        // The bytes of the name may have been escaped.
        if let method = methodsByName[identifier] { return .method(method) }
        return .unknown(identifier)
    }

    /// Returns the name of a method by the mangled name that clients of protocol versions 1 and 2 call it by; nil for others.
    package func methodName(mangled: String, arguments count: Int) -> String? {
        mangledNames.method(mangled, arguments: count)
    }

    /// Returns whether the type has a method or stream of this name.
    package func hasTarget(_ name: String) -> Bool { if case .unknown = target(name) { false } else { true } }

    /// Takes calls of the method with this name off the fast path, at all servers of the process: each of them then looks for its
    /// own rate. Other methods stay on it.
    package func checkCalls(of name: String) {
        for method in methods where method.name == name { method.isChecked.store(true, ordering: .relaxed) }
    }

    /// The description of the dispatch table.
    package var description: ActorTypeDescription {
        ActorTypeDescription(
            type: name,
            methods: methods.map {
                ActorTypeDescription.Method(
                    target: $0.name, arguments: $0.arguments, isIdempotent: $0.isIdempotent, isGeneric: $0.generics > 0)
            }, states: states, events: events)
    }

    /// The names of methods and streams, for error messages.
    package var names: [String] { methods.map(\.name).sorted() + streamNames }
}

/// The actor types that the program has used so far.
package enum ActorTypes {
    private static let known = Mutex<[ObjectIdentifier: ActorType]>([:])

    /// Returns the entry of an actor type.
    package static func entry<A: TrebuchetActor>(of type: A.Type) -> ActorType {
        let key = ObjectIdentifier(type)
        if let found = known.withLock({ $0[key] }) { return found }
        let created = ActorType(type)
        return known.withLock { known in
            if let found = known[key] { return found }
            known[key] = created
            return created
        }
    }
}

extension TrebuchetActor {
    /// The dispatch table, built once.
    static var dispatch: _DispatchTable<Self> { ActorTypes.entry(of: Self.self).dispatchTable(of: Self.self) }

    /// Returns the properties of the method with this name that callers need; nil if the dispatch table has no such method.
    static func entry(_ name: String) -> (isIdempotent: Bool, generics: Int)? {
        dispatch.methods.first { $0.name == name }.map { ($0.isIdempotent, $0.generics) }
    }
}
