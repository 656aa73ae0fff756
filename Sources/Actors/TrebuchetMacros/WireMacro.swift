import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The macro `@Wire`: adds direct JSON coding to a type, beside its `Codable`.
struct WireMacro: ExtensionMacro {
    static let attributeName = "Wire"

    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        let enclosing = context.lexicalContext.first?.as(ExtensionDeclSyntax.self)?.modifiers
        let access = AccessLevel(declaration.modifiers) ?? enclosing.flatMap { AccessLevel($0) } ?? .internal
        // The protocols that the type does not declare.
        let asked = protocols.map { $0.trimmedDescription.split(separator: ".").last.map(String.init) ?? "" }
        var conformances = ["Decodable", "Encodable"].filter(asked.contains).map { "Swift." + $0 }
        var body = ""
        do throws(UnsupportedWireType) {
            body = try self.body(of: declaration, access.memberPrefix, marked: node)
            conformances.append("TrebuchetActors._WireValue")
        } catch {
            context.diagnose(Diagnostic(node: error.node, message: error.problem))
            // Without the generated code the type is coded by `Codable`, whose conformance may not be declared.
            guard error.problem.severity == .warning, !isGeneric(declaration), !conformances.isEmpty else { return [] }
        }
        return [
            try ExtensionDeclSyntax(
                "extension \(type.trimmed): \(raw: conformances.joined(separator: ", ")) {\n\(raw: body)\n}")
        ]
    }

    private static func body(
        of declaration: some DeclGroupSyntax, _ access: String, marked node: AttributeSyntax
    ) throws(UnsupportedWireType) -> String {
        if let type = declaration.as(StructDeclSyntax.self) {
            return WireStruct(try WireProperty.all(of: type), access).source
        }
        guard let type = declaration.as(EnumDeclSyntax.self) else {
            throw UnsupportedWireType(
                "kind", node, "'@Wire' can only be attached to a struct, or to an enum with raw values", .error)
        }
        try WireEnum.check(type)
        return WireEnum.source(access)
    }

    private static func isGeneric(_ declaration: some DeclGroupSyntax) -> Bool {
        declaration.asProtocol((any WithGenericParametersSyntax).self)?.genericParameterClause != nil
    }
}

/// The reason why `@Wire` generates no code for a type.
struct UnsupportedWireType: Error {
    let node: Syntax
    let problem: MacroDiagnostic

    init(_ id: String, _ node: some SyntaxProtocol, _ message: String, _ severity: DiagnosticSeverity = .warning) {
        self.node = Syntax(node)
        problem = MacroDiagnostic(
            id: "wire.\(id)", message: message + (severity == .warning ? "; only 'Codable' encodes it" : ""),
            severity: severity)
    }

    /// Throws for a type with custom coding.
    static func check(
        _ generics: GenericParameterClauseSyntax?, _ members: MemberBlockItemListSyntax
    ) throws(UnsupportedWireType) {
        if let generics { throw UnsupportedWireType("generic", generics, "'@Wire' has no effect on a generic type") }
        for member in members {
            if let configuration = member.decl.as(IfConfigDeclSyntax.self) {
                throw UnsupportedWireType(
                    "condition", configuration, "'@Wire' has no effect on a type with members under '#if'")
            }
            for (name, node) in own(member.decl) where ["CodingKeys", "init(from:)", "encode(to:)"].contains(name) {
                throw UnsupportedWireType("own", node, "'@Wire' has no effect on a type that declares '\(name)'")
            }
        }
    }

    private static func own(_ member: DeclSyntax) -> [(String, Syntax)] {
        switch member.as(DeclSyntaxEnum.self) {
        case .enumDecl(let type): [(type.name.plainText, Syntax(type.name))]
        case .structDecl(let type): [(type.name.plainText, Syntax(type.name))]
        case .typeAliasDecl(let alias): [(alias.name.plainText, Syntax(alias.name))]
        case .functionDecl(let function): [(WireName.method(function), Syntax(function.name))]
        case .initializerDecl(let initializer):
            [
                (
                    "init(\(initializer.signature.parameterClause.parameters.map { $0.firstName.plainText + ":" }.joined()))",
                    Syntax(initializer.initKeyword)
                )
            ]
        default: []
        }
    }
}

/// Enums that are coded by their raw values.
enum WireEnum {
    private static let rawTypes = [
        "String", "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64",
    ]

    static func check(_ type: EnumDeclSyntax) throws(UnsupportedWireType) {
        try UnsupportedWireType.check(type.genericParameterClause, type.memberBlock.members)
        // The raw type comes first.
        let first = type.inheritanceClause?.inheritedTypes.first?.type.trimmedDescription.split(separator: ".").last
        guard let first, rawTypes.contains(String(first)) else {
            throw UnsupportedWireType(
                "raw", type.name, "'@Wire' has no effect on an enum without string or integer raw values")
        }
    }

    static func source(_ access: String) -> String {
        """
        \(access)init(from decoder: any Swift.Decoder) throws {
            try self.init(_wireRaw: decoder)
        }
        \(access)func encode(to encoder: any Swift.Encoder) throws {
            try self._encodeWireRaw(to: encoder)
        }
        \(access)init(_wire reader: inout TrebuchetActors._WireReader) throws {
            self = try reader.raw(Self.self)
        }
        \(access)func _write(wire writer: inout TrebuchetActors._WireWriter) throws {
            try writer.raw(self)
        }
        """
    }
}
