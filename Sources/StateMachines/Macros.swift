/// Gives an enum case key paths, such as `\.child` in `Scope(state: \.child, action: \.child)`.
@attached(member, names: named(AllCasePaths), named(allCasePaths))
@attached(extension, conformances: CasePathable)
public macro CasePathable() = #externalMacro(module: "StateMachineMacros", type: "CasePathableMacro")

/// Lets a ``Store`` offer the properties of this state one by one and tell observers of each only when that one changed.
@attached(extension, conformances: ObservableState)
public macro ObservableState() = #externalMacro(module: "StateMachineMacros", type: "ObservableStateMacro")

/// Makes a type a ``Reducer``: its `Action` becomes `@CasePathable`, its `body` is built by ``ReducerBuilder``.
@attached(memberAttribute)
@attached(extension, conformances: Reducer)
public macro Reducer() = #externalMacro(module: "StateMachineMacros", type: "ReducerMacro")

/// Lets the effects of a state machine be composed: `.merge(.fetch(1), .log("…"))`, `.concat(…)`, nested at will.
///
/// It adds the cases and factories `merge` and `concat`, and ``ComposableEffectConvertible/asComposableEffect()``.
@attached(member, names: named(merge), named(concat), named(asComposableEffect))
@attached(extension, conformances: ComposableEffectConvertible)
public macro ComposableEffect() = #externalMacro(module: "StateMachineMacros", type: "ComposableEffectMacro")

/// Runs the effects of a state machine through one method for each case of its `IOEffect`.
///
/// For `case fetch(Int)` the type has to have `func runFetch(_: Int) -> IOResultStream`; the nested protocol
/// `EffectRunner` lists them all. In an actor they may be isolated and `async`. A generic type gets no protocol, since
/// Swift cannot nest one there: write the methods in a plain extension. `IOEffect` becomes `@ComposableEffect`; `Action`
/// and `IOResult`, if nested, become `@CasePathable`.
///
/// - Parameter isBodyComposable: whether `body` runs `nestedBody`, the children, before the machine itself.
@attached(
    member, names: named(EffectRunner), named(applyIOEffect), named(body), named(runIOEffect))
@attached(memberAttribute)
public macro ComposableEffectRunner(isBodyComposable: Bool = false) =
    #externalMacro(module: "StateMachineMacros", type: "ComposableEffectRunnerMacro")
