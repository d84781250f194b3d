// SPDX-License-Identifier: Apache-2.0
#include "control/cli/simulate.h"

#include <errno.h>
#include <math.h>

// The picture and the area of the curves in it, in pixels.
#define WIDTH  760
#define HEIGHT 460
#define LEFT   70
#define RIGHT  20
#define TOP    50
#define BOTTOM 60

// Decades that the axes span.
struct axes {
	double x_low, x_high;
	double y_low, y_high;
};

static double x_of(const struct axes *axes, double points)
{
	return LEFT +
		(log10(points) - axes->x_low) / (axes->x_high - axes->x_low) *
		(WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axes *axes, double cv)
{
	return HEIGHT - BOTTOM -
		(log10(cv) - axes->y_low) / (axes->y_high - axes->y_low) * (HEIGHT - TOP - BOTTOM);
}

static double curve_value(const struct simulate_step *step, int curve)
{
	if (curve == 0)
		return step->predicted_cv;
	return curve == 1 ? step->fixed_ties_cv : step->fair_ties_cv;
}

static struct axes fit_axes(const struct simulate_step *steps, unsigned count)
{
	double low = HUGE_VAL, high = 0;

	for (unsigned i = 0; i < count; i++) {
		for (int curve = 0; curve < 3; curve++) {
			low = fmin(low, curve_value(&steps[i], curve));
			high = fmax(high, curve_value(&steps[i], curve));
		}
	}
	// One backend has no spread at all; a logarithm needs something above zero.
	low = low > 0 ? low : 1e-4;
	high = high > low ? high : low * 10;
	return (struct axes){
		.x_low = floor(log10(steps[0].points)),
		.x_high = fmax(
			ceil(log10(steps[count - 1].points)), floor(log10(steps[0].points)) + 1),
		.y_low = floor(log10(low)),
		.y_high = ceil(log10(high)),
	};
}

static void draw_grid(FILE *out, const struct axes *axes)
{
	for (double x = axes->x_low; x <= axes->x_high; x++) {
		double at = x_of(axes, pow(10, x));

		fprintf(out,
			"<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='#ddd'/>\n"
			"<text x='%.1f' y='%d' text-anchor='middle'>%.0f</text>\n",
			at, TOP, at, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 18, pow(10, x));
	}
	for (double y = axes->y_low; y <= axes->y_high; y++) {
		double at = y_of(axes, pow(10, y));

		fprintf(out,
			"<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>\n"
			"<text x='%d' y='%.1f' text-anchor='end'>%g %%</text>\n",
			LEFT, at, WIDTH - RIGHT, at, LEFT - 8, at + 4, pow(10, y) * 100);
	}
}

static void draw_curve(FILE *out, const struct axes *axes, const struct simulate_step *steps,
	unsigned count, int curve)
{
	static const struct {
		const char *color;
		const char *dash;
		const char *label;
	} styles[] = {
		{"#888", "6 4", "formula"},
		{"#c33", "none", "fixed order of ties (v1, v2)"},
		{"#16a", "none", "fair ties (v3)"},
	};

	fprintf(out,
		"<polyline fill='none' stroke='%s' stroke-width='2' stroke-dasharray='%s' points='",
		styles[curve].color, styles[curve].dash);
	for (unsigned i = 0; i < count; i++) {
		double cv = fmax(curve_value(&steps[i], curve), pow(10, axes->y_low));

		fprintf(out, "%.1f,%.1f ", x_of(axes, steps[i].points), y_of(axes, cv));
	}
	fprintf(out,
		"'/>\n<line x1='%d' y1='%d' x2='%d' y2='%d' stroke='%s' stroke-width='2' "
		"stroke-dasharray='%s'/>\n<text x='%d' y='%d'>%s</text>\n",
		WIDTH - 290, TOP + 14 + curve * 18, WIDTH - 260, TOP + 14 + curve * 18,
		styles[curve].color, styles[curve].dash, WIDTH - 252, TOP + 18 + curve * 18,
		styles[curve].label);
}

int simulate_draw(
	const char *path, const struct simulate_step *steps, unsigned count, uint32_t backends)
{
	struct axes axes = fit_axes(steps, count);
	FILE *out = fopen(path, "w");

	if (out == NULL)
		return -errno;
	fprintf(out,
		"<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
		"font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' "
		"fill='#fff'/>\n<text x='%d' y='24' font-size='15'>Spread of %u backends by points a "
		"weight</text>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, backends);
	draw_grid(out, &axes);
	for (int curve = 0; curve < 3; curve++)
		draw_curve(out, &axes, steps, count, curve);
	fprintf(out,
		"<text x='%d' y='%d' text-anchor='middle'>points a weight</text>\n"
		"<text transform='translate(16 %d) rotate(-90)' text-anchor='middle'>coefficient of "
		"variation</text>\n</svg>\n",
		(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, (TOP + HEIGHT - BOTTOM) / 2);
	if (fclose(out) != 0)
		return -errno;
	return 0;
}
