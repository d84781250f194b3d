-- SPDX-License-Identifier: Apache-2.0
-- Load for a Ringway balancer, by Pktgen-DPDK. Parameters come from the environment, so no file needs an edit:
--	RINGWAY_LOAD	flows (default), syn, single, malformed
--	RINGWAY_MAC	the balancer port's MAC address (needed)
--	RINGWAY_VIP	virtual address, IPv4 (203.0.113.10); RINGWAY_PORT its port (80)
--	RINGWAY_CLIENTS	first client address (198.18.0.1); RINGWAY_CLIENT_COUNT how many (250)
--	RINGWAY_PCAP	malformed: the packets to send
--	RINGWAY_RATE	percent of the link (100); RINGWAY_SIZE frame size with CRC (64); RINGWAY_SECONDS (10)
--	PKTGEN_LUA	directory of Pktgen.lua, from Pktgen's sources
-- Prints lines that begin with RESULT. Run it as README.md beside this file says.

package.path = (os.getenv("PKTGEN_LUA") or ".") .. "/?.lua;" .. package.path
require "Pktgen"

local function setting(name, default)
	local value = os.getenv("RINGWAY_" .. name)
	return (value and value ~= "") and value or default
end

local load = setting("LOAD", "flows")
local mac = setting("MAC")
local vip = setting("VIP", "203.0.113.10")
local port = tonumber(setting("PORT", "80"))
local clients = setting("CLIENTS", "198.18.0.1")
local client_count = tonumber(setting("CLIENT_COUNT", "250"))
local rate = tonumber(setting("RATE", "100"))
local size = tonumber(setting("SIZE", "64"))
local seconds = tonumber(setting("SECONDS", "10"))

local function fail(text)
	print("RESULT error=" .. text)
	pktgen.quit()
	os.exit(2)
end

local function address_number(text)
	local a, b, c, d = text:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$")
	if not a then fail("not an IPv4 address: " .. text) end
	return ((a * 256 + b) * 256 + c) * 256 + d
end

local function address_text(number)
	number = math.floor(number)
	return string.format("%d.%d.%d.%d", number >> 24 & 255, number >> 16 & 255, number >> 8 & 255, number & 255)
end

local function span(set, from, first, last, step)
	set("0", "start", from)
	set("0", "min", first)
	set("0", "max", last)
	set("0", "inc", step)
end

-- Many flows: addresses and ports step together, so the sequence repeats after their least common multiple.
local function use_range(protocol)
	local first = address_number(clients)

	pktgen.range.dst_mac("0", "start", mac)
	span(pktgen.range.src_ip, clients, clients, address_text(first + client_count - 1), "0.0.0.1")
	span(pktgen.range.dst_ip, vip, vip, vip, "0.0.0.0")
	span(pktgen.range.src_port, 1024, 1024, 65000, 1)
	span(pktgen.range.dst_port, port, port, port, 0)
	span(pktgen.range.pkt_size, size, size, size, 0)
	pktgen.range.ip_proto("0", protocol)
	pktgen.set_range("0", "on")
end

local function use_single()
	pktgen.set_mac("0", "dst", mac)
	pktgen.set_ipaddr("0", "src", clients .. "/32")
	pktgen.set_ipaddr("0", "dst", vip)
	pktgen.set_proto("0", "tcp")
	pktgen.set("0", "sport", 1024)
	pktgen.set("0", "dport", port)
	pktgen.set("0", "size", size)
end

-- Pktgen's TCP packets carry ACK alone; the flags of a range can only be set by its command language.
local function set_syn()
	local here = debug.getinfo(1, "S").source:match("^@?(.*/)") or "./"

	pktgen.run("cmd", here .. "syn.pkt", "")
end

local loads = {
	flows = function() use_range("tcp") end,
	udp = function() use_range("udp") end,
	syn = function() use_range("tcp"); set_syn() end,
	single = use_single,
	malformed = function() pktgen.pcap("0", "on") end, -- the file comes by Pktgen's -s 0:FILE
}

pktgen.screen("off")
if not mac then fail("set RINGWAY_MAC to the MAC address of the balancer's port") end
if not loads[load] then fail("RINGWAY_LOAD=" .. load .. " is none of flows, udp, syn, single, malformed") end
loads[load]()
pktgen.set("0", "rate", rate)
pktgen.clr()
pktgen.start("0")
for second = 1, seconds do
	pktgen.delay(1000)
	local now = pktgen.portStats("0", "rate")[0]
	print(string.format("RESULT second=%d tx_pps=%d rx_pps=%d", second, now.pkts_tx, now.pkts_rx))
end
pktgen.stop("0")
pktgen.delay(500)
local total = pktgen.portStats("0", "port")[0]
print(string.format("RESULT load=%s tx_packets=%d rx_packets=%d", load, total.opackets, total.ipackets))
pktgen.quit()
