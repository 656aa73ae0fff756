import DocumentedDefaults
import Testing
import TrebuchetServices

@Suite("Defaults of settings")
struct DefaultsTests {
    @Test("defaults match their comments")
    func documented() throws {
        let authLimits = try DocumentedDefaults(
            of: AuthLimits(), in: "Services/TrebuchetServicesModel/Auth/AuthLimits.swift")
        #expect(authLimits.wrong == [])
        #expect(authLimits.compared.count >= 12)
        let roomLimits = try DocumentedDefaults(
            of: RoomLimits(), in: "Services/TrebuchetServicesModel/Rooms/RoomLimits.swift")
        #expect(roomLimits.wrong == [])
        #expect(roomLimits.compared.count >= 12)
        let collectionLimits = try DocumentedDefaults(
            of: CollectionLimits(), in: "Services/TrebuchetServicesModel/Collections/CollectionLimits.swift")
        #expect(collectionLimits.wrong == [])
        #expect(collectionLimits.compared.count >= 8)
    }

    @Test("the page of limits lists every setting of the services with its default")
    func page() throws {
        for limits in [AuthLimits(), RoomLimits(), CollectionLimits()] as [any Sendable] {
            let table = try DocumentedTable(of: limits, in: "Reference/Limits.md")
            #expect(table.problems == [])
            #expect(table.count > 15)
        }
    }
}
