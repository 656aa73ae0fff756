import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder

/// A stored property of a struct that is marked `@Wire`.
struct WireProperty {
    /// The name, with backticks if it has them.
    let name: String
    let type: String
    /// True for a constant with an initial value, which is not read.
    let isFixed: Bool
    let isDeprecated: Bool

    /// The string literal of the name in JSON, with the colon after it.
    var literal: String { "\"\\\"\(plainName)\\\":\"" }

    private var plainName: String { name.hasPrefix("`") ? String(name.dropFirst().dropLast()) : name }

    /// Returns the stored properties in the order of their declaration.
    static func all(of type: StructDeclSyntax) throws(UnsupportedWireType) -> [WireProperty] {
        try UnsupportedWireType.check(type.genericParameterClause, type.memberBlock.members)
        var properties: [WireProperty] = []
        for member in type.memberBlock.members {
            guard let variable = member.decl.as(VariableDeclSyntax.self), !variable.modifiers.isStatic else { continue }
            for binding in variable.bindings where isStored(binding) {
                properties.append(try WireProperty(binding, of: variable))
            }
        }
        return properties
    }

    private static func isStored(_ binding: PatternBindingSyntax) -> Bool {
        guard let block = binding.accessorBlock else { return true }
        guard case .accessors(let accessors) = block.accessors else { return false }
        return accessors.allSatisfy { ["willSet", "didSet"].contains($0.accessorSpecifier.text) }
    }

    private init(_ binding: PatternBindingSyntax, of variable: VariableDeclSyntax) throws(UnsupportedWireType) {
        guard let pattern = binding.pattern.as(IdentifierPatternSyntax.self) else {
            throw UnsupportedWireType("pattern", binding.pattern, "'@Wire' requires properties with one name each")
        }
        name = pattern.identifier.text
        let deprecation = variable.attributes.deprecation
        isDeprecated = deprecation != nil
        if let attribute = variable.attributes.first(where: { $0.id != deprecation?.id }) {
            throw UnsupportedWireType(
                "attribute", attribute,
                "'@Wire' cannot determine the effect of the attribute on '\(pattern.identifier.plainText)'")
        }
        let kinds: [Keyword] = [.lazy, .weak, .unowned]
        if let modifier = variable.modifiers.first(where: { kinds.map { .keyword($0) }.contains($0.name.tokenKind) }) {
            throw UnsupportedWireType(
                "modifier", modifier, "'@Wire' has no effect on a type with a '\(modifier.name.text)' property")
        }
        guard pattern.identifier.plainText.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C }) else {
            throw UnsupportedWireType("name", pattern, "'@Wire' has no effect on a type with a property of this name")
        }
        isFixed = variable.bindingSpecifier.tokenKind == .keyword(.let) && binding.initializer != nil
        if let written = binding.typeAnnotation?.type.trimmed {
            type =
                written.as(ImplicitlyUnwrappedOptionalTypeSyntax.self).map { "\($0.wrappedType.trimmedDescription)?" }
                ?? written.description
        } else if let value = binding.initializer?.value, case .known(let known) = InitialValueType(of: value) {
            type = known.description
        } else {
            throw UnsupportedWireType(
                "type", pattern,
                "'@Wire' cannot infer the type of '\(pattern.identifier.plainText)': add a type annotation")
        }
    }
}

/// The generated code for a struct.
struct WireStruct {
    private let properties: [WireProperty]
    /// The beginning of each member: its access level. Code that is deprecated itself may use deprecated properties without a
    /// warning.
    private let prefix: String

    init(_ properties: [WireProperty], _ access: String) {
        self.properties = properties
        prefix = (properties.contains(where: \.isDeprecated) ? "@available(*, deprecated)\n" : "") + access
    }

    /// Includes the complete `Codable` that the compiler would synthesize, so that a second, custom implementation
    /// elsewhere causes a redeclaration error.
    var source: String {
        let read = properties.filter { !$0.isFixed }
        return """
            private enum CodingKeys: \(properties.isEmpty ? "" : "Swift.String, ")Swift.CodingKey {
            \(lines(properties) { "case \($0.name)" })
            }
            \(prefix)init(from decoder: any Swift.Decoder) throws {
            \(direct(read))
                \(read.isEmpty ? "_" : "let container") = try decoder.container(keyedBy: CodingKeys.self)
            \(lines(read) { "self.\($0.name) = try container._wireMember((\($0.type)).self, .\($0.name))" })
            }
            \(prefix)func encode(to encoder: any Swift.Encoder) throws {
                if try self._writeDirectly(to: encoder) { return }
                \(properties.isEmpty ? "_" : "var container") = encoder.container(keyedBy: CodingKeys.self)
            \(lines(properties) { "try container._wireMember(self.\($0.name), .\($0.name))" })
            }
            \(prefix)init(_wire reader: inout TrebuchetActors._WireReader) throws {
                try reader.begin()
            \(lines(properties, reading))
                try reader.end()
            }
            \(prefix)func _write(wire writer: inout TrebuchetActors._WireWriter) throws {
                try writer.begin()
            \(lines(properties) { "try writer.member(\($0.literal), self.\($0.name))" })
                writer.end()
            }
            """
    }

    /// Assigns members one by one, because a constant with an initial value cannot be set by an assignment of `self`.
    private func direct(_ read: [WireProperty]) -> String {
        guard !read.isEmpty else { return "" }
        return """
                if let value = Self._readDirectly(from: decoder) {
            \(lines(read) { "    self.\($0.name) = value.\($0.name)" })
                    return
                }
            """
    }

    private func reading(_ property: WireProperty) -> String {
        property.isFixed
            ? "try reader.pass(\(property.literal))"
            : "self.\(property.name) = try reader.member(\(property.literal), (\(property.type)).self)"
    }

    private func lines(_ properties: [WireProperty], _ line: (WireProperty) -> String) -> String {
        properties.map { "    " + line($0) }.joined(separator: "\n")
    }
}
