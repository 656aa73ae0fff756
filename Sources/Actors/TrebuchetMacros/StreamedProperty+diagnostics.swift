import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder

/// The possible errors of a property marked `@StreamedState` or `@StreamedEvents`.
extension StreamedProperty {
    /// The modifiers that contradict a streamed property, with reasons.
    private static let contradictions: [(keyword: Keyword, reason: String)] = [
        (.static, "a streamed property belongs to one actor, not to its type"),
        (.class, "a streamed property belongs to one actor, not to its type"),
        (.lazy, "subscribers receive the value immediately, so it must be initialized"),
        (.weak, "a streamed property owns its value"),
        (.unowned, "a streamed property owns its value"),
        (.nonisolated, "a streamed property changes only on its actor"),
        (.distributed, "clients read a streamed property by observing it"),
    ]

    static func problems(of variable: VariableDeclSyntax, _ kind: Kind) -> [Diagnostic] {
        var problems: [Diagnostic] = []
        let keyword = variable.bindingSpecifier
        if keyword.tokenKind == .keyword(.let) {
            let replacement = keyword.with(\.tokenKind, .keyword(.var))
            problems.append(
                MacroDiagnostic.error(
                    "let", at: keyword, "'@\(kind.attributeName)' needs a 'var': a constant has no changes to stream",
                    fixIts: [.replacing("let.fix", "change 'let' to 'var'", keyword, with: replacement)]))
        }
        problems += modifierProblems(of: variable, kind)
        if let problem = otherWrapper(of: variable, kind) { problems.append(problem) }
        if variable.bindings.count > 1 { problems.append(severalBindings(of: variable, kind)) }
        for binding in variable.bindings {
            if kind == .events, let value = binding.initializer {
                let bare = binding.with(\.initializer, nil)
                problems.append(
                    MacroDiagnostic.error(
                        "initial", at: value,
                        "'@StreamedEvents' cannot have an initial value: events are sent individually",
                        fixIts: [.replacing("initial.fix", "remove the value", binding, with: bare)]))
            }
            if let block = binding.accessorBlock { problems.append(accessorProblem(block, of: variable, kind)) }
        }
        return problems
    }

    private static func modifierProblems(of variable: VariableDeclSyntax, _ kind: Kind) -> [Diagnostic] {
        variable.modifiers.compactMap { modifier in
            for (keyword, reason) in contradictions where modifier.name.tokenKind == .keyword(keyword) {
                let word = modifier.name.text
                return MacroDiagnostic.error(
                    "modifier", at: modifier.name, "'@\(kind.attributeName)' cannot be '\(word)': \(reason)",
                    fixIts: [
                        FixIt("modifier.fix", "remove '\(word)'", variable.removing(modifier))
                    ])
            }
            return nil
        }
    }

    /// Returns an error for another attribute that begins with a capital letter: a property wrapper, a macro or a
    /// global actor.
    private static func otherWrapper(of variable: VariableDeclSyntax, _ kind: Kind) -> Diagnostic? {
        for case .attribute(let attribute) in variable.attributes {
            let name = attribute.plainName
            guard name != kind.attributeName, name.first?.isUppercase == true else { continue }
            return MacroDiagnostic.error(
                "wrapped", at: attribute, "'@\(kind.attributeName)' cannot be combined with '@\(name)' on one property",
                fixIts: [FixIt("wrapped.fix", "remove '@\(name)'", variable.removing(attribute))])
        }
        return nil
    }

    private static func accessorProblem(
        _ block: AccessorBlockSyntax, of variable: VariableDeclSyntax, _ kind: Kind
    ) -> Diagnostic {
        if case .accessors(let accessors) = block.accessors,
            let observer = accessors.first(where: { accessor in
                [.keyword(.willSet), .keyword(.didSet)].contains(accessor.accessorSpecifier.tokenKind)
            })
        {
            let word = observer.accessorSpecifier.text
            return MacroDiagnostic.error(
                "observer", at: observer.accessorSpecifier,
                "'@\(kind.attributeName)' cannot have '\(word)': move its code to the method that changes the property")
        }
        return MacroDiagnostic.error(
            "computed", at: block.leftBrace,
            "'@\(kind.attributeName)' requires a stored property: stream the state that this property is computed from",
            fixIts: [removal(from: variable, kind)])
    }

    /// Returns the fix-it that turns a streamed property into an ordinary one.
    static func removal(from variable: VariableDeclSyntax, _ kind: Kind) -> FixIt {
        // Looked up, because the macro's attribute node is not the one inside the declaration.
        let attribute = variable.attributes.attribute(named: kind.attributeName)
        return FixIt("remove", "remove '@\(kind.attributeName)'", attribute.map(variable.removing) ?? [])
    }

    private static func severalBindings(of variable: VariableDeclSyntax, _ kind: Kind) -> Diagnostic {
        MacroDiagnostic.error(
            "bindings", at: variable.bindingSpecifier,
            "'@\(kind.attributeName)' requires a separate declaration for each property",
            fixIts: [FixIt("bindings.fix", "declare each property separately", [variable.splittingBindings])])
    }

    static func missingType(
        of binding: PatternBindingSyntax, named pattern: IdentifierPatternSyntax, guess: TypeSyntax?, _ kind: Kind
    ) -> Diagnostic {
        let type = guess ?? TypeSyntax(MissingTypeSyntax(placeholder: .identifier("<#Type#>")))
        let annotated =
            binding
            .with(\.pattern, binding.pattern.with(\.trailingTrivia, []))
            .with(
                \.typeAnnotation,
                TypeAnnotationSyntax(
                    colon: .colonToken(trailingTrivia: .space), type: type, trailingTrivia: pattern.trailingTrivia))
        return MacroDiagnostic.error(
            "type", at: pattern.identifier,
            "'@\(kind.attributeName)' cannot infer the type of '\(pattern.identifier.text)': add a type annotation",
            fixIts: [.replacing("type.fix", "add a type annotation", binding, with: annotated)])
    }
}

extension VariableDeclSyntax {
    /// Returns the changes that remove `modifier` and keep the trivia before the declaration.
    func removing(_ modifier: DeclModifierSyntax) -> [FixIt.Change] {
        var result = self
        result.modifiers = modifiers.filter { $0.id != modifier.id }
        return [.replace(oldNode: Syntax(self), newNode: Syntax(result.with(\.leadingTrivia, leadingTrivia)))]
    }

    /// Returns the changes that remove `attribute` and keep the trivia before the declaration.
    func removing(_ attribute: AttributeSyntax) -> [FixIt.Change] {
        var result = self
        result.attributes = attributes.filter { $0.id != attribute.id }
        return [.replace(oldNode: Syntax(self), newNode: Syntax(result.with(\.leadingTrivia, leadingTrivia)))]
    }

    /// The change that splits `var a, b: Int` into `var a: Int` and `var b: Int`, each with attributes and modifiers.
    fileprivate var splittingBindings: FixIt.Change {
        var type: TypeAnnotationSyntax?
        var single: [String] = []
        // In reverse order: a name without type and value has the type of the next one.
        for binding in bindings.reversed() {
            var binding = binding.with(\.trailingComma, nil).trimmed
            if let own = binding.typeAnnotation {
                type = own
            } else if binding.initializer == nil {
                binding.typeAnnotation = type
            }
            single.insert(with(\.bindings, [binding]).trimmedDescription, at: 0)
        }
        let text = leadingTrivia.description + single.joined(separator: "\n" + leadingTrivia.lastIndentation)
        return .replace(oldNode: Syntax(self), newNode: Syntax(MissingDeclSyntax(placeholder: .identifier(text))))
    }
}

extension Trivia {
    /// The white space after the last line break.
    fileprivate var lastIndentation: String {
        String(description.reversed().prefix { $0 == " " || $0 == "\t" }.reversed())
    }
}
