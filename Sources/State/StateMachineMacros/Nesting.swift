import SwiftDiagnostics
import SwiftSyntax

/// A child machine, according to the state of its parent.
struct NestedChild {
    /// The key path of the child's state, such as `\.counter`.
    let path: String
    /// The type of the child, such as `CounterFeature`.
    let feature: String
    /// The condition of the property's enclosing `#if`, as source text.
    let condition: String?
    let node: Syntax

    /// Returns `source`, enclosed in the `#if` and `#endif` of the property.
    func guarded(_ source: String) -> String { CompilationCondition.guarding(source, by: condition) }
}

/// A case of the parent that forwards an event of a child.
struct ForwardedCase {
    /// The enum that an event belongs to: `Input` or `IOResult`.
    enum Kind: String {
        case input, ioResult

        /// Creates the kind from the name of the enum in the parent or the child.
        init?(type: String) {
            switch type {
            case "Input": self = .input
            case "IOResult": self = .ioResult
            default: return nil
            }
        }
    }

    let element: EnumCase
    let own: Kind
    let feature: String
    let target: Kind
    /// The child's case; nil if the payload is the child's event itself.
    let targetCase: String?
    let node: AttributeSyntax

    /// The pattern in a `switch` over the parent's events, such as `.input(.setValue(value: let value0))`.
    var pattern: String { ".\(own)(\(element.pattern))" }

    /// The event of the child, such as `.input(.setValue(value: value0))`.
    var event: String {
        guard let targetCase else { return ".\(target)(value0)" }
        return ".\(target)(.\(targetCase)\(Self.arguments(element)))"
    }

    /// The pattern in a `switch` over the child's events, such as `.ioResult(.loaded(let value0))`.
    var eventPattern: String {
        guard let targetCase else { return ".\(target)(let value0)" }
        let values = element.payload.indices.map { "let value\($0)" }.joined(separator: ", ")
        return ".\(target)(.\(targetCase)\(values.isEmpty ? "" : "(\(values))"))"
    }

    /// The event of the parent, such as `.ioResult(.childLoaded(value0))`.
    var ownEvent: String {
        ".\(own)(.\(element.name.text)\(Self.arguments(element)))"
    }

    private static func arguments(_ element: EnumCase) -> String {
        let values = element.payload.enumerated().map { index, part in
            (part.label.map { "\($0): " } ?? "") + "value\(index)"
        }
        return values.isEmpty ? "" : "(\(values.joined(separator: ", ")))"
    }
}

/// The children of a machine marked `@ComposableStateMachine`, and the events forwarded to them.
struct Nesting {
    private(set) var children: [NestedChild] = []
    private(set) var forwards: [ForwardedCase] = []
    private(set) var diagnostics: [Diagnostic] = []

    init(_ declaration: some DeclGroupSyntax) {
        for case let state as StructDeclSyntax in declaration.members(named: "State").map(\.asNominal) {
            for (member, condition) in state.memberBlock.members.conditional { readChild(member, if: condition) }
        }
        for kind in ["Input", "IOResult"] {
            for case let events as EnumDeclSyntax in declaration.members(named: kind).map(\.asNominal) {
                for (member, condition) in events.memberBlock.members.conditional {
                    guard let cases = member.as(EnumCaseDeclSyntax.self) else { continue }
                    readForward(cases, if: condition, own: kind == "Input" ? .input : .ioResult)
                }
            }
        }
        for forward in forwards where !children.contains(where: { $0.feature == forward.feature }) {
            diagnostics.append(
                .forward(
                    forward.node,
                    "no property of 'State' is marked '@NestedState' and has the type '\(forward.feature).State'"))
        }
        for child in children where !forwards.contains(where: { $0.feature == child.feature }) {
            diagnostics.append(
                MacroDiagnostic.warning(
                    "child", at: child.node,
                    "no action is forwarded to this child: mark a case of 'Input' with '@Forward(\(child.feature).Input.…)'"
                ))
        }
        for (index, child) in children.enumerated()
        where children[..<index].contains(where: {
            $0.feature == child.feature && CompilationCondition.mayHold($0.condition, with: child.condition)
        }) {
            diagnostics.append(
                MacroDiagnostic.error(
                    "twins", at: child.node,
                    "'@Forward' cannot distinguish two children of the type '\(child.feature)': run the second with "
                        + "'Scope' or 'NestedStateMachine' in a custom 'body'"))
        }
    }

    private mutating func readChild(_ member: DeclSyntax, if condition: String?) {
        guard let variable = member.as(VariableDeclSyntax.self),
            variable.attributes.attribute(named: "NestedState") != nil
        else { return }
        for binding in variable.bindings {
            guard let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier else { continue }
            let call = binding.initializer?.value.as(FunctionCallExprSyntax.self)
            let type = binding.typeAnnotation?.type.trimmedDescription ?? call?.calledExpression.trimmedDescription
            guard let type, type.hasSuffix(".State") else {
                diagnostics.append(
                    MacroDiagnostic.error(
                        "state", at: binding,
                        "'@NestedState' requires the type of the child's state, such as 'Child.State': write "
                            + "'var \(name.text): Child.State' or 'var \(name.text) = Child.State()'"))
                continue
            }
            children.append(
                NestedChild(
                    path: "\\.\(name.text)", feature: String(type.dropLast(".State".count)), condition: condition,
                    node: Syntax(binding)))
        }
    }

    private mutating func readForward(_ declaration: EnumCaseDeclSyntax, if condition: String?, own: ForwardedCase.Kind)
    {
        let isValue = declaration.attributes.attribute(named: "ForwardValue") != nil
        guard
            let attribute = declaration.attributes.attribute(named: "ForwardValue")
                ?? declaration.attributes.attribute(named: "Forward")
        else { return }
        guard case .argumentList(let arguments)? = attribute.arguments, let target = arguments.first?.expression else {
            return
        }
        let parts = target.trimmedDescription.split(separator: ".").map(String.init)
        guard parts.count >= 3, let kind = ForwardedCase.Kind(type: parts[parts.count - 2]) else {
            diagnostics.append(
                .forward(
                    attribute,
                    "'@Forward' takes a case 'Child.Input.name' or 'Child.IOResult.name', or all cases, 'Child.Input.self', "
                        + "and not to '\(target.trimmedDescription)'"))
            return
        }
        let isWhole = parts.last == "self"
        if isValue, !isWhole || kind != .input || own != .input {
            diagnostics.append(.forward(attribute, "'@ForwardValue' takes 'Child.Input.self', on a case of 'Input'"))
            return
        }
        for element in EnumCase.cases(of: declaration, if: condition) {
            if isWhole, element.payload.count != 1 {
                diagnostics.append(
                    .forward(
                        attribute,
                        "'\(element.name.plainText)' forwards all cases of '\(parts.dropLast().joined(separator: "."))', so its "
                            + "single payload must have that type"))
                continue
            }
            forwards.append(
                ForwardedCase(
                    element: element, own: own, feature: parts.dropLast(2).joined(separator: "."), target: kind,
                    targetCase: isWhole ? nil : parts[parts.count - 1], node: attribute))
        }
    }
}

extension Diagnostic {
    fileprivate static func forward(_ node: some SyntaxProtocol, _ message: String) -> Diagnostic {
        MacroDiagnostic.error("forward", at: node, message)
    }
}

extension DeclSyntax {
    /// The declaration of a type, as its concrete syntax node.
    fileprivate var asNominal: any DeclSyntaxProtocol {
        if let type = self.as(StructDeclSyntax.self) { return type }
        if let type = self.as(EnumDeclSyntax.self) { return type }
        return self
    }
}
