import SwiftReading
import SwiftSyntax

/// A stored property that has no value before an initializer sets one.
struct ValuelessProperty {
    let name: TokenSyntax
    let type: String

    /// Returns the properties of a declaration. Properties with attributes are excluded, because an attribute may
    /// provide the value.
    static func properties(in variable: VariableDeclSyntax) -> [ValuelessProperty] {
        guard variable.attributes.isEmpty, !variable.modifiers.isStatic else { return [] }
        let isConstant = variable.bindingSpecifier.tokenKind == .keyword(.let)
        return variable.bindings.compactMap { binding in
            guard binding.initializer == nil, isStored(binding),
                let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier,
                let type = binding.typeAnnotation?.type.trimmed
            else { return nil }
            let isOptional = type.is(OptionalTypeSyntax.self) || type.is(ImplicitlyUnwrappedOptionalTypeSyntax.self)
            return isOptional && !isConstant ? nil : ValuelessProperty(name: name, type: type.description)
        }
    }

    private static func isStored(_ binding: PatternBindingSyntax) -> Bool {
        guard let block = binding.accessorBlock else { return true }
        guard case .accessors(let accessors) = block.accessors else { return false }
        return accessors.allSatisfy {
            [.keyword(.willSet), .keyword(.didSet)].contains($0.accessorSpecifier.tokenKind)
        }
    }
}
