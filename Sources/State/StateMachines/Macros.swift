/// Adds case key paths to an enum, such as `\.child` in `Scope(state: \.child, action: \.child)`.
@attached(member, names: named(AllCasePaths), named(allCasePaths))
@attached(extension, conformances: CasePathable)
public macro CasePathable() = #externalMacro(module: "StateMachineMacros", type: "CasePathableMacro")

/// Makes the properties of this state accessible through a ``Store``, with separate observation: an observer is
/// notified only when its property has changed.
@attached(extension, conformances: ObservableState)
public macro ObservableState() = #externalMacro(module: "StateMachineMacros", type: "ObservableStateMacro")

/// Makes a type a ``Reducer``: its `Action` becomes `@CasePathable`, and ``ReducerBuilder`` builds its `body`.
@attached(memberAttribute)
@attached(extension, conformances: Reducer)
public macro Reducer() = #externalMacro(module: "StateMachineMacros", type: "ReducerMacro")

/// Makes the events of a state machine its actions: `Action` is `StateMachineEvent<Input, IOResult>`.
///
/// `Input` and `IOResult`, if nested, become `@CasePathable`. The conformance to ``StateMachine-protocol`` must be
/// written explicitly.
@attached(member, names: named(Action))
@attached(memberAttribute)
public macro StateMachine() = #externalMacro(module: "StateMachineMacros", type: "StateMachineMacro")

/// Makes the effects of a state machine composable, at any depth: `.merge(.fetch(1), .log("…"))`, `.concat(…)`.
///
/// It adds the cases and factories `merge` and `concat`, and ``ComposableEffectConvertible/asComposableEffect()``.
@attached(member, names: named(merge), named(concat), named(asComposableEffect))
@attached(extension, conformances: ComposableEffectConvertible)
public macro ComposableEffect() = #externalMacro(module: "StateMachineMacros", type: "ComposableEffectMacro")

/// Runs the effects of a state machine through one method for each case of its `IOEffect`.
///
/// For `case fetch(Int)` the type must have `func runFetch(_: Int) -> IOResultStream`; the nested protocol
/// `EffectRunner` lists all methods. In an actor they may be isolated and `async`. A generic type gets no protocol,
/// since Swift cannot nest one there: write the methods in a plain extension. `IOEffect` becomes `@ComposableEffect`;
/// `Action` and `IOResult`, if nested, become `@CasePathable`.
///
/// - Parameter isBodyComposable: whether `body` runs `nestedBody`, the children, before the machine itself.
@attached(
    member, names: named(EffectRunner), named(applyIOEffect), named(body), named(runIOEffect))
@attached(memberAttribute)
public macro ComposableEffectRunner(isBodyComposable: Bool = false) =
    #externalMacro(module: "StateMachineMacros", type: "ComposableEffectRunnerMacro")

/// Works like ``ComposableEffectRunner(isBodyComposable:)``, with a `body` that runs the children first if the type is
/// a `@ComposableStateMachine` too.
@attached(
    member, names: named(EffectRunner), named(applyIOEffect), named(body), named(runIOEffect))
@attached(memberAttribute)
public macro EffectComposition() =
    #externalMacro(module: "StateMachineMacros", type: "ComposableEffectRunnerMacro")

/// Runs child machines before the machine itself. Each property of `State` marked `@NestedState` gets a
/// ``NestedStateMachine``, with the events of cases marked `@Forward`.
///
///     @ComposableStateMachine
///     struct Screen: StateMachine {
///         struct State { @NestedState var counter = Counter.State() }
///         enum Input {
///             @Forward(Counter.Input.increment) case tapped
///         }
///         enum IOResult {
///             @Forward(Counter.IOResult.self) case counter(Counter.IOResult)
///         }
///
/// The children's results must be forwarded, too: a result without a case is reported as an issue, and is not sent.
/// The parent's own functions receive the same events after the children.
@attached(member, names: named(nestedBody), named(body))
public macro ComposableStateMachine() =
    #externalMacro(module: "StateMachineMacros", type: "ComposableStateMachineMacro")

/// Marks a stored or computed property of a machine's `State` as the state of a child. Its type must be explicit, as
/// `Child.State`.
@attached(peer)
public macro NestedState() = #externalMacro(module: "StateMachineMacros", type: "MarkerMacro")

/// Marks a case of a machine's `Input` or `IOResult` as an event of a child, with the same payload: one case of the
/// child, `Child.Input.increment`, or all cases, `Child.IOResult.self`.
@attached(peer)
public macro Forward<Target>(_ target: Target) = #externalMacro(module: "StateMachineMacros", type: "MarkerMacro")

/// Marks a case of a machine's `Input` whose single payload is the input of a child:
/// `@ForwardValue(Child.Input.self)`.
@attached(peer)
public macro ForwardValue<Target>(_ target: Target) = #externalMacro(module: "StateMachineMacros", type: "MarkerMacro")
