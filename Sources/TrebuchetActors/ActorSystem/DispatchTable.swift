public import Deltas
public import Distributed
internal import TrebuchetWire

/// The methods and streams of an actor type, by their names on the wire. Written by `@Trebuchet`.
@_documentation(visibility: internal)
public struct _DispatchTable<A: DistributedActor>: Sendable {
    let methods: [_DispatchMethod<A>]
    let streams: [_DispatchStream<A>]
    let executor: TrebuchetExecutor
    /// What an actor wants to do before it is let go; nil for nothing.
    let deactivate: Deactivate?

    public typealias Deactivate = @Sendable (isolated A) async throws -> Void

    public init(
        executor: TrebuchetExecutor = .reactor, methods: [_DispatchMethod<A>], streams: [_DispatchStream<A>],
        deactivate: Deactivate? = nil
    ) {
        self.executor = executor
        self.methods = methods
        self.streams = streams
        self.deactivate = deactivate
    }

    /// Sends what an actor on the global pool has changed, before a call of it is answered.
    func publishMarked(_ actor: isolated A) {
        for stream in streams { stream.existing(actor)?.publishMarked() }
    }
}

/// How one distributed method is called from the bytes of its arguments.
@_documentation(visibility: internal)
public struct _DispatchMethod<A: DistributedActor>: Sendable {
    public typealias InPlace =
        @Sendable (
            _ actor: isolated A, _ arguments: inout _CallArguments, _ reply: inout _CallReply
        ) throws -> Void
    public typealias Operation = @Sendable (isolated A) async throws -> _CallResult
    public typealias Prepare = @Sendable (_ arguments: inout _CallArguments) throws -> Operation

    enum Body: Sendable {
        case inPlace(InPlace)
        case suspending(Prepare)
    }

    let name: String
    let arguments: Int
    let generics: Int
    let errorType: (any Error.Type)?
    /// Whether a client may send it again when it does not know what became of it.
    let isIdempotent: Bool
    /// Whether its arguments are shown to nobody.
    let isRedacted: Bool
    let body: Body

    /// A synchronous method: it runs in place, on the actor's reactor.
    public static func sync(
        _ name: String, arguments: Int, generics: Int = 0, throwing: (any Error.Type)? = nil, idempotent: Bool = false,
        redacted: Bool = false, _ body: @escaping InPlace
    ) -> Self {
        Self(
            name: name, arguments: arguments, generics: generics, errorType: throwing, isIdempotent: idempotent,
            isRedacted: redacted, body: .inPlace(body))
    }

    /// A method that may suspend: its arguments are decoded first, then the operation runs in a task.
    public static func async(
        _ name: String, arguments: Int, generics: Int = 0, throwing: (any Error.Type)? = nil, idempotent: Bool = false,
        redacted: Bool = false, _ prepare: @escaping Prepare
    ) -> Self {
        Self(
            name: name, arguments: arguments, generics: generics, errorType: throwing, isIdempotent: idempotent,
            isRedacted: redacted, body: .suspending(prepare))
    }
}

/// How one streamed state is reached.
@_documentation(visibility: internal)
public struct _DispatchStream<A: DistributedActor>: Sendable {
    /// `observeState`
    let name: String
    /// Whether it is a state, of which the newest value counts; else events, of which each does.
    let isState: Bool
    /// Of the state, or of the events.
    let valueType: any (Codable & Sendable).Type
    /// What connections observe, with the reactor that the actor lives on.
    let hub: @Sendable (isolated A, SystemShard?) -> StreamHub
    /// What readers in the actor's process follow: `LocalStates` of the state's type, or `EventRelay` of the events'.
    let readers: @Sendable (isolated A, SystemShard?) -> AnyObject
    /// The source of a state, where there is one already, whose changes are noted until a call has ended.
    let existing: @Sendable (isolated A) -> StateSource?
    /// Set for a state that is kept in the server's store.
    let persistence: StatePersistence<A>?
    /// Set for events that are kept there.
    var eventPersistence: EventPersistence<A>?
    /// The source of such a state.
    let persisted: @Sendable (isolated A, SystemShard?) -> StateSource?
    /// Lets a state go on from a version of an earlier process; false when it was observed in this one.
    let resume: @Sendable (isolated A, UInt64) -> Bool
    /// What letting go of the actor would lose.
    let usage: @Sendable (isolated A) -> StreamUsage
}

@_documentation(visibility: internal)
extension _DispatchStream where A.ActorSystem == TrebuchetActorSystem {
    /// - Parameters:
    ///   - cell: what tells of the property's changes.
    ///   - value: the property.
    ///   - change: gives it to be changed in place.
    @_disfavoredOverload
    public static func state<Value: Codable & Sendable>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void
    ) -> Self {
        state(name, cell, persistence: nil) { access($0, value) }
    }

    /// A state that knows what changed in it: its changes are taken from it and the value is not compared.
    @inlinable
    public static func state<Value: DeltaState>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void
    ) -> Self {
        state(name, cell, value: value, change: change) { $0.takeChanges() }
    }

    /// - Parameter take: takes the state's changes: a closure that is made for its type.
    @usableFromInline
    static func state<Value: DeltaState>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void,
        take: @escaping @Sendable (inout Value) -> StateChanges?
    ) -> Self {
        state(name, cell, persistence: nil) { changeAccess($0, cell, value, change, take) }
    }

    @available(
        *, unavailable,
        message:
            "a @StreamedState is a struct or an enum: what changes inside of an object is not noticed; make the class a struct, or keep the object beside the state and put what clients see of it into one"
    )
    public static func state<Value: AnyObject>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void
    ) -> Self { fatalError() }

    @_disfavoredOverload
    @available(*, unavailable, message: "the type of a @StreamedState must be Codable and Sendable")
    public static func state<Value>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void
    ) -> Self { fatalError() }

    /// A state that is kept in the server's store under the actor's name and `property`.
    ///
    /// - Parameters:
    ///   - version: the form in which it is kept.
    ///   - change: gives the property to be changed in place, or set to what was kept.
    @_disfavoredOverload
    public static func persisted<Value: Codable & Sendable>(
        _ name: String, property: String, version: _StateVersion = .init(),
        _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void
    ) -> Self {
        let persistence = StatePersistence<A>(property: property, version: version, value: value) { actor, kept in
            change(actor) { $0 = kept }
        }
        return state(name, cell, persistence: persistence) { access($0, value) }
    }

    /// The same of a state that knows what changed in it: its changes are what is kept.
    @inlinable
    public static func persisted<Value: DeltaState>(
        _ name: String, property: String, version: _StateVersion = .init(),
        _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void
    ) -> Self {
        persisted(name, property: property, version: version, cell, value: value, change: change) {
            $0.takeChanges()
        }
    }

    @usableFromInline
    static func persisted<Value: DeltaState>(
        _ name: String, property: String, version: _StateVersion,
        _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void,
        take: @escaping @Sendable (inout Value) -> StateChanges?
    ) -> Self {
        let persistence = StatePersistence<A>(changesOf: property, version: version, value: value) { actor, kept in
            change(actor) { $0 = kept }
        }
        return state(name, cell, persistence: persistence) { changeAccess($0, cell, value, change, take) }
    }

    @available(
        *, unavailable,
        message:
            "a @StreamedState is a struct or an enum: what changes inside of an object is not noticed; make the class a struct, or keep the object beside the state and put what clients see of it into one"
    )
    public static func persisted<Value: AnyObject>(
        _ name: String, property: String, version: _StateVersion = .init(),
        _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void
    ) -> Self { fatalError() }

    @_disfavoredOverload
    @available(*, unavailable, message: "the type of a @StreamedState must be Codable and Sendable")
    public static func persisted<Value>(
        _ name: String, property: String, version: _StateVersion = .init(),
        _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        value: @escaping @Sendable (isolated A) -> Value,
        change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void
    ) -> Self { fatalError() }

    private static func state<Value: Codable & Sendable>(
        _ name: String, _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        persistence: StatePersistence<A>?, access: @escaping @Sendable (isolated A) -> StateAccess<Value>
    ) -> Self {
        let source: @Sendable (isolated A, SystemShard?) -> StateSource = { actor, home in
            cell(actor).source(home: home, access: access(actor))
        }
        return Self(
            name: name, isState: true, valueType: Value.self,
            hub: { source($0, $1) },
            readers: { source($0, $1).readers },
            existing: { cell($0).source },
            persistence: persistence,
            persisted: { persistence == nil ? nil : source($0, $1) },
            resume: { cell($0).resume(version: $1) },
            usage: { actor in cell(actor).usage })
    }

    /// Events that are kept in the server's store under the actor's name and `property`.
    public static func persistedEvents<Event>(
        _ name: String, property: String, _ sender: @escaping @Sendable (isolated A) -> EventSender<Event>
    ) -> Self {
        var stream = events(name, sender)
        stream.eventPersistence = EventPersistence(
            property: property,
            keeping: { actor in sender(actor).keeping },
            source: { actor, home in sender(actor).persisted(home: home, entry: entry(of: actor)) })
        return stream
    }

    /// Events, of which nobody is to miss one.
    public static func events<Event>(
        _ name: String, _ sender: @escaping @Sendable (isolated A) -> EventSender<Event>
    ) -> Self {
        Self(
            name: name, isState: false, valueType: Event.self,
            hub: { actor, home in sender(actor).source(home: home, entry: entry(of: actor)) },
            readers: { actor, _ in sender(actor).readers },
            existing: { _ in nil },
            persistence: nil,
            persisted: { _, _ in nil },
            resume: { _, _ in false },
            usage: { actor in sender(actor).usage })
    }

    /// The access to a state that knows its changes, which are taken from it.
    private static func changeAccess<Value: DeltaState>(
        _ actor: isolated A, _ cell: @escaping @Sendable (isolated A) -> _StateCell<Value>,
        _ value: @escaping @Sendable (isolated A) -> Value,
        _ change: @escaping @Sendable (isolated A, (inout Value) -> Void) -> Void,
        _ take: @escaping @Sendable (inout Value) -> StateChanges?
    ) -> StateAccess<Value> {
        var access = access(actor, value)
        var reader = ChangeReader()
        access.takeChanges = { [weak actor] coder in
            var changes: StateChanges?
            // Asked for in the actor's isolation. What is taken out of the log of changes is no change itself.
            actor?.assumeIsolated { actor in
                cell(actor).withoutNoting {
                    change(actor) { changes = reader.take(from: &$0, with: coder, take) }
                }
            }
            return changes
        }
        return access
    }

    private static func access<Value: Codable & Sendable>(
        _ actor: isolated A, _ value: @escaping @Sendable (isolated A) -> Value
    ) -> StateAccess<Value> {
        StateAccess(
            read: { [weak actor] in
                // Asked for in the actor's isolation, as all of a source.
                actor.map { $0.assumeIsolated { value($0) } }
            },
            enter: entry(of: actor))
    }

    /// What runs work in an actor's isolation, soon; never when the actor is gone.
    private static func entry(of actor: isolated A) -> StreamHub.Entry {
        { [weak actor] work in
            Task { [weak actor] in await actor?.whenLocal { _ in work() } }
        }
    }
}
