import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// A distributed actor marked `@Trebuchet`, read from its declaration.
struct TrebuchetActorDeclaration {
    /// The executor of the actor.
    enum Executor {
        /// The actor runs on a reactor, and a synchronous method is called where its message arrives.
        case reactor
        /// The actor runs on the global pool.
        case concurrent
    }

    let name: TokenSyntax
    let access: AccessLevel
    let executor: Executor
    private(set) var streams: [ConditionallyCompiled<StreamedProperty>] = []
    private(set) var distributed: [ConditionallyCompiled<DistributedMember>] = []
    /// The handwritten members and their names.
    private(set) var ownMembers: [ConditionallyCompiled<NamedMember>] = []
    /// The methods that the server calls at activation, at deactivation and at alarms.
    private(set) var lifecycle: [LifecycleMethod.Kind: LifecycleMethod] = [:]
    /// Stored properties that need a value from an initializer.
    private(set) var valueless: [ValuelessProperty] = []
    private(set) var hasInitializer = false
    /// The errors of single members; the others can still be served.
    private(set) var diagnostics: [Diagnostic] = []

    init(
        _ declaration: some DeclGroupSyntax, attribute: AttributeSyntax, in context: some MacroExpansionContext
    ) throws(DiagnosticsError) {
        guard let actor = declaration.as(ActorDeclSyntax.self),
            actor.modifiers.contains(where: { $0.name.tokenKind == .keyword(.distributed) })
        else { throw DiagnosticsError(diagnostics: [Self.notDistributed(declaration)]) }
        name = actor.name.trimmed
        // A member of a `public extension` is public without a modifier.
        let enclosing = context.lexicalContext.first?.as(ExtensionDeclSyntax.self)?.modifiers
        access = AccessLevel(actor.modifiers) ?? enclosing.flatMap { AccessLevel($0) } ?? .internal
        executor = try Self.executor(attribute)
        for member in actor.memberBlock.members.flattened() { read(member) }
        diagnostics += collisions + unpersistable + uninitialized
    }

    private mutating func read(_ member: ConditionallyCompiled<DeclSyntax>) {
        let condition = member.condition
        ownMembers += NamedMember.members(in: member.value).map { ConditionallyCompiled($0, if: condition) }
        do throws(DiagnosticsError) {
            switch member.value.as(DeclSyntaxEnum.self) {
            case .functionDecl(let function) where function.modifiers.isDistributed:
                if let warning = LifecycleMethod.warning(about: function) { diagnostics.append(warning) }
                distributed.append(ConditionallyCompiled(try DistributedMember(function), if: condition))
            case .functionDecl(let function):
                guard let method = LifecycleMethod(function) else { return }
                lifecycle[method.kind] = method
                if let error = method.error(about: function, if: condition) { diagnostics.append(error) }
            case .initializerDecl: hasInitializer = true
            case .variableDecl(let variable):
                valueless += ValuelessProperty.properties(in: variable)
                if let kind = StreamedProperty.kind(of: variable) {
                    // Its own macro reports the errors.
                    guard let stream = try? StreamedProperty(variable, kind) else { return }
                    streams.append(ConditionallyCompiled(stream, if: condition))
                } else if variable.modifiers.isDistributed, let property = DistributedMember(variable) {
                    distributed.append(ConditionallyCompiled(property, if: condition))
                }
            default: break
            }
        } catch {
            diagnostics += error.diagnostics
        }
    }
}

/// A member of an actor that occupies a name.
struct NamedMember {
    let name: String
    let token: TokenSyntax
    let declaration: DeclSyntax

    /// Returns the members that `declaration` declares. Static members have a separate namespace, but types do not.
    static func members(in declaration: DeclSyntax) -> [NamedMember] {
        func member(_ token: TokenSyntax) -> NamedMember {
            NamedMember(name: token.plainText, token: token, declaration: declaration)
        }
        return switch declaration.as(DeclSyntaxEnum.self) {
        case .functionDecl(let function): function.modifiers.isStatic ? [] : [member(function.name)]
        case .variableDecl(let variable) where !variable.modifiers.isStatic:
            variable.bindings.compactMap { $0.pattern.as(IdentifierPatternSyntax.self).map { member($0.identifier) } }
        case .typeAliasDecl(let alias): [member(alias.name)]
        case .structDecl(let type): [member(type.name)]
        case .enumDecl(let type): [member(type.name)]
        case .classDecl(let type): [member(type.name)]
        case .actorDecl(let type): [member(type.name)]
        default: []
        }
    }
}
